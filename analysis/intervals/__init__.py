"""Intervals: clustered influence values with Student's t, and a bootstrap for what has none."""
