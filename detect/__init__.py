"""Detectors: scores of how likely a model saw each example."""
