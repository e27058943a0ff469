"""Estimates of what a run needs, before it starts: copies, tokens, memory, disk and time."""
