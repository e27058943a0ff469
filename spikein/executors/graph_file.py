"""A graph as a JSON file, for the processes and machines that build its steps.

A step is the name of a function with plain values, so a worker needs only this file and the store;
`python -m spikein.build_step` builds one step of it by hand. A run writes it for its workers, in a
folder that only its user may enter, and passes them its SHA-256: a worker refuses any other bytes.
Mappings keep their order, so that a worker receives the same values as this process.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from inject.errors import InputError, SpikeinError
from inject.files import fsync
from inject.source_digest import source_digest
from inject.step import InputProjection, Recipe, Step, library_versions
from spikein.pipeline.graph import Graph
from spikein.store.filesystem import CHANGE_STORE, writing
from spikein.store.store import Store

GRAPH_FILE = "graph.json"


class GraphFile(NamedTuple):
    """The path of a written graph, and the digest of its bytes."""

    path: str
    sha256: str

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return Path(self.path).parent


@dataclass(frozen=True, kw_only=True)
class StoredGraph:
    """A graph as a worker reads it."""

    steps: Mapping[str, Step]
    """Steps by digest, inputs first; each has the recipe that the run recorded for it."""
    store: str
    """The folder of the store."""
    working_folder: str
    """The base of the experiment's relative paths."""


def write_graph(graph: Graph, store: Store, folder: Path | None) -> GraphFile:
    """Write a graph for the workers of this run.

    Args:
        graph: the steps.
        store: the store to build them in.
        folder: of the run; None if the store cannot be written.

    Raises:
        InputError: when the store cannot be written.
        TypeError: naming the step and the key of a value that is not plain JSON.
    """
    if folder is None:
        raise InputError(
            "cannot be written, and there are steps to build",
            where=str(store.root),
            hint=CHANGE_STORE,
        )
    document = {
        "name": graph.name,
        "store": str(store.root.resolve()),
        "working_folder": str(Path.cwd()),
        "steps": {step.digest: _record(step) for step in graph.steps},
    }
    content = json.dumps(document, indent=1).encode()
    path = folder / GRAPH_FILE
    with writing(store.root, CHANGE_STORE, "the graph of the run"):
        path.touch(mode=0o600)
        path.write_bytes(content)
        fsync(path)
    return GraphFile(str(path.resolve()), hashlib.sha256(content).hexdigest())


@lru_cache(maxsize=2)
def read_graph(file: GraphFile) -> StoredGraph:
    """Return the graph that a run wrote for its workers.

    Raises:
        SpikeinError: when the file has other bytes than the run wrote.
    """
    content = Path(file.path).read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise SpikeinError(f"{file.path} is not the graph that this run wrote")
    return parse_graph(content)


def parse_graph(content: bytes) -> StoredGraph:
    """Return the graph of a file's content.

    Raises:
        SpikeinError: for a step whose digest differs from its key.
        ValueError, LookupError, TypeError: for another kind of file.
    """
    parsed = json.loads(content)
    steps: dict[str, Step] = {}
    for digest, record in parsed["steps"].items():
        step = steps[digest] = _step(record, steps)
        if step.digest != digest:
            raise SpikeinError(
                f"the step {step.name} is not the one that the run named {digest[:12]}: someone "
                "edited what determines its content in the file. Only `execution` may be edited."
            )
    return StoredGraph(steps=steps, store=parsed["store"], working_folder=parsed["working_folder"])


def require_same_code(step: Step) -> None:
    """Check that this process has the code and the libraries that identify a step.

    Raises:
        SpikeinError: for other ones, which would build something else under the step's name.
    """
    recipe = step.recipe
    if source_digest(step.roots) != recipe.code:
        raise SpikeinError(
            f"the code of the step {step.name} is not that of the process that started the run: "
            "it was edited since, or this machine has another version. Start the run again."
        )
    present = library_versions(step.libraries)
    others = [
        f"{name} {present.get(name)} (there {version})"
        for name, version in recipe.libraries.items()
        if present.get(name) != version
    ]
    if others:
        raise SpikeinError(
            f"this machine has other libraries than the one that started the run: "
            f"{', '.join(others)}"
        )


_PLAIN = ("kind", "label", "function", "protected", "processes")
"""Fields of a step that survive JSON unchanged."""


def _record(step: Step) -> dict[str, Any]:
    settings, execution = step.json_values()
    return {
        **{name: getattr(step, name) for name in _PLAIN},
        "settings": settings,
        "inputs": dict(step.recipe.inputs),
        "execution": execution,
        "code": {"modules": list(step.code), "digest": step.recipe.code},
        "libraries": dict(step.recipe.libraries),
        "volatile": list(step.volatile),
        "reads": {name: reading._asdict() for name, reading in step.reads.items()},
        "facets": dict(step.facets),
    }


def _step(record: Mapping[str, Any], steps: Mapping[str, Step]) -> Step:
    """Return a step with its stored identity, not that of the code and libraries here."""
    reads = record["reads"].items()
    step = Step(
        **{name: record[name] for name in (*_PLAIN, "settings", "execution", "facets")},
        inputs={name: steps[digest] for name, digest in record["inputs"].items()},
        code=tuple(record["code"]["modules"]),
        libraries=tuple(record["libraries"]),
        volatile=tuple(record["volatile"]),
        reads={
            name: InputProjection(reading["facet"], tuple(reading["files"]))
            for name, reading in reads
        },
    )
    recipe = Recipe(
        **{name: record[name] for name in ("kind", "function", "settings", "inputs", "libraries")},
        code=record["code"]["digest"],
    )
    object.__setattr__(step, "recipe", recipe)
    return step
