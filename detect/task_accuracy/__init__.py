"""Task accuracy: how each dataset is asked, and whether a model chooses the right answer."""
