"""One detector per file, a short pure function from evidence to a score.

The file `NAME.py` defines the detector NAME as its `DETECTOR`; `detect.registry` finds it.
"""
