"""The parts of `python -m scripts.bench.inject`, one part per file."""
