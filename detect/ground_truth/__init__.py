"""Ground truth: who was seen how often and all that was measured, from a run or from a bundle."""
