"""Passes of a model for dataset-level detectors, and which of them an arm's results read."""
