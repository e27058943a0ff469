"""The effect of contamination on the accuracy on a benchmark."""
