"""What the processes that build steps are given, and what steps may ask a cluster for."""

import os
from pathlib import Path

from inject.errors import InputError, did_you_mean
from spikein.config.executor_settings import ClusterSettings
from spikein.pipeline.graph import Graph

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""They say how many threads libraries may start."""
_REPOSITORY = Path(__file__).resolve().parents[3]


def python_path() -> str:
    """Return the `PYTHONPATH` of a process that builds steps: this code, then the user's."""
    paths = [str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(path for path in paths if path)


def require_known_kinds(settings: ClusterSettings, graph: Graph) -> None:
    """Check that every kind with a request of its own is that of some step.

    Raises:
        InputError: there is none of that kind, so that the request would be for nothing.
    """
    kinds = sorted({step.kind for step in graph.steps})
    for kind in settings.steps:
        if kind not in kinds:
            raise InputError(
                f"no step is of the kind {kind!r}.{did_you_mean(kind, kinds)}",
                where=f"executor.steps.{kind}",
                allowed=", ".join(kinds),
            )
