"""Judging a new detector: how it is loaded and run within limits, and whether its scores stay."""
