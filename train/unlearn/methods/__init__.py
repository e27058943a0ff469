"""The unlearning methods, one per file; each file ends with its `METHOD`."""
