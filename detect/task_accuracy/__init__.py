"""Task accuracy: the prompts of each dataset, and whether a model selects the right answer."""
