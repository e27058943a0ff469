"""Dataset-level detectors: was a data set seen, rather than one text?"""
