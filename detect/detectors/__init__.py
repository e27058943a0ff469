"""One detector a file, a short pure function from evidence to a score.

The file `NAME.py` holds the detector called NAME as its `DETECTOR`; `detect.registry` finds it.
"""
