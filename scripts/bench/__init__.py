"""Benchmarks: each is run as `python -m scripts.bench.NAME` and ends with one JSON object."""
