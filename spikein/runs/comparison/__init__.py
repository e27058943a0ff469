"""The comparison of two runs: their differences, and its page."""
