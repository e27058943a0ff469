"""Ground truth in one place: who was seen how often, all that was measured; as one file, too."""
