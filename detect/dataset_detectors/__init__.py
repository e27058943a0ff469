"""Model passes for dataset-level detectors: shuffled datasets, and paraphrases."""
