"""Ground truth: the exposures of all texts and all measurements, from a run or from a bundle."""
