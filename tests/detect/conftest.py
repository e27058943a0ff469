"""Properties are checked without a time limit on each example: a busy machine is no defect."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
