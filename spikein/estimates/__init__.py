"""Estimates of a run before it starts: copies, tokens, memory, disk and time."""
