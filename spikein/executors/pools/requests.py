"""What steps ask a cluster for, checked before the first of them is begun."""

from inject.errors import InputError, did_you_mean
from spikein.config.executor_settings import ClusterSettings
from spikein.pipeline.graph import Graph


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
