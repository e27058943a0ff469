"""Intervals: clustered influence values with Student's t."""
