"""Dataset-level detectors: was a dataset seen, rather than one text?"""
