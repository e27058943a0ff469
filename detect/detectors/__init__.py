"""One detector a file: a short pure function from what the engine provides to a score.

Each module offers `DETECTOR`, named in `detect.registry`.
"""
