"""A graph as a file, for the processes and machines that build its steps.

Steps are functions with what they close over, which only pickle can carry to another process. The
file is written by one run for its own workers, in a folder that only its user may enter, and is
named to them by its SHA-256: a worker refuses any other bytes. It is read during that run alone.
"""

import hashlib
import pickle
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import cloudpickle

from inject.errors import SpikeinError
from inject.files import fsync
from inject.plugins.modules import executed_sources, take_sources
from inject.source_digest import source_digest
from inject.step import library_versions
from spikein.pipeline.graph import Graph, Step

GRAPH_FILE = "graph.pkl"


class GraphFile(NamedTuple):
    """Where a graph was written, and which bytes those are."""

    path: str
    sha256: str


def write_graph(graph: Graph, folder: Path) -> GraphFile:
    """Write a graph, with the digests of its steps, for the workers of this run."""
    for step in graph.steps:
        # A worker must build what this process named, so the recipe travels with the step.
        _ = step.digest
    # Modules of plug-in files are found again by their sources; the bytes that ran here run there.
    content = pickle.dumps((executed_sources(), cloudpickle.dumps(graph)))
    path = folder / GRAPH_FILE
    path.touch(mode=0o600)
    path.write_bytes(content)
    fsync(path)
    return GraphFile(str(path.resolve()), hashlib.sha256(content).hexdigest())


@lru_cache(maxsize=2)
def read_graph(file: GraphFile) -> dict[str, Step]:
    """Return the steps of a graph by their digests.

    Raises:
        SpikeinError: the file is not what this run wrote.
    """
    content = Path(file.path).read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise SpikeinError(f"{file.path} is not the graph that this run wrote")
    sources, graph = pickle.loads(content)  # noqa: S301 our own bytes, compared above
    take_sources(sources)
    found: Graph = pickle.loads(graph)  # noqa: S301
    return {step.digest: step for step in found.steps}


def require_same_code(step: Step) -> None:
    """Check that this process has the code and the libraries that a step was named with.

    Raises:
        SpikeinError: it has others, and would build something else under the step's name.
    """
    recipe = step.recipe
    if step.roots and source_digest(step.roots) != recipe.code:
        raise SpikeinError(
            f"the code of the step {step.name} is not that of the process that started the run: "
            "it was edited since, or this machine has another version. Start the run again."
        )
    here = library_versions(step.libraries)
    others = [
        f"{name} {here.get(name)} (there {version})"
        for name, version in recipe.libraries.items()
        if here.get(name) != version
    ]
    if others:
        raise SpikeinError(
            f"this machine has other libraries than the one that started the run: "
            f"{', '.join(others)}"
        )
