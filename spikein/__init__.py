"""spikein: spike known text into a corpus, train on it, and see which detectors can tell.

This package knows what an experiment is, which steps it takes, where results live and where
each step runs. Importing it costs nothing: no torch, no pydantic, no registry.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    # Reading package metadata costs about 10 ms, which `spikein --help` need not pay.
    if name == "__version__":
        from importlib.metadata import version

        return version("spikein")
    raise AttributeError(f"module 'spikein' has no attribute {name!r}")
