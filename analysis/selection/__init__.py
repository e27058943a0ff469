"""Choices on `tune`: settings, the best detector, and the scores that are reported."""
