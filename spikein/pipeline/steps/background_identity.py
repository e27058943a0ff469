"""What names the background of an experiment: taken before it is read, and compared afterwards."""

from typing import Any

from inject.corpus.background.registry import source_identity
from spikein.config.schema import Experiment


def sources_identity(experiment: Experiment) -> list[dict[str, Any]]:
    """Return what the background is: the content of each source, and its weight.

    Reads the sources' files (or asks the hub), so it is called once an experiment.
    """
    if experiment.corpus.imported is not None:
        return [{"imported": experiment.corpus.imported.identity()}]
    return [
        {"content": source_identity(source), "weight": source.weight}
        for source in experiment.corpus.sources
    ]
