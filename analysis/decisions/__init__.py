"""Decisions about single texts, with a bound on their errors."""
