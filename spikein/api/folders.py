"""Where artifacts and runs lie when nobody says: the variables of the environment, then `store`
and `runs` below the working directory."""

import os
from pathlib import Path

AnyPath = str | os.PathLike[str]
"""A path as a user gives it."""

STORE_VARIABLE = "SPIKEIN_STORE"
RUNS_VARIABLE = "SPIKEIN_RUNS"


def store_folder(given: AnyPath | None = None) -> Path:
    """Return the folder of artifacts."""
    return Path(given or os.environ.get(STORE_VARIABLE) or "store")


def runs_folder(given: AnyPath | None = None) -> Path:
    """Return the folder of runs."""
    return Path(given or os.environ.get(RUNS_VARIABLE) or "runs")
