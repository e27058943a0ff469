"""The unlearning methods, one a file; each file ends in its `METHOD`."""
