"""What dataset-level detectors ask a model: to read shuffled data sets, and paraphrases."""
