"""Benchmarks and reproductions."""
