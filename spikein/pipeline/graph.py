"""The step graph: the artifacts that an experiment needs, in order.

A graph is its goals; the other steps follow from their inputs (`inject.step`).

A plan compares the graph with the store before anything runs. It lists the artifacts that are
stored and intact (all contents to be read are verified), those that are damaged, and those that
need not be built because an artifact with equal files exists.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from inject.step import InputProjection, Step
from spikein.store.artifact import Artifact, require_current, verified
from spikein.store.manifest import Manifest, StoreError
from spikein.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The steps that lead to the goals."""

    goals: tuple[Step, ...]
    name: str = ""
    """The experiment's name, for display."""

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every step once, inputs before what needs them.

        The order depends only on the goals' order and the inputs' names.
        """
        by_digest: dict[str, Step] = {}

        def visit(step: Step) -> None:
            if step.digest in by_digest:
                return
            for name in sorted(step.inputs):
                visit(step.inputs[name])
            by_digest[step.digest] = step

        for goal in self.goals:
            visit(goal)
        return tuple(by_digest.values())

    def complete(self) -> "Graph":
        """Return the graph with every step as a goal, so that none may be absent."""
        return Graph(goals=self.steps, name=self.name)


State = Literal["stored", "same", "damaged", "build", "maybe", "unneeded"]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One step of a plan."""

    step: Step
    state: State
    """`stored`: nothing to do; `same`: absent, but an artifact built from equal content has its
    files; `damaged`: will be built again; `build`: will be built; `maybe`: will be built unless
    its inputs turn out to have the same content as before; `unneeded`: absent, and no step to
    build reads it."""
    artifact: Artifact | None
    """The stored artifact; for `same`, the one with the files."""
    problem: StoreError | None = None
    """The problem of a damaged artifact."""

    @property
    def to_do(self) -> bool:
        """Whether it may have to be built."""
        return self.state in ("damaged", "build", "maybe")

    @property
    def in_words(self) -> str:
        """Return the state of the step as text."""
        texts = {
            "stored": "in the store",
            "same": "in the store under another name",
            "damaged": "damaged, will be rebuilt",
            "maybe": "to do, unless its inputs stay equal",
        }
        return texts.get(self.state, "to do")


def plan(graph: Graph, store: Store) -> list[Planned]:
    """Return the plan of the graph, in the order of the steps; build nothing.

    The goals and everything read to build them are verified: their files are read once.
    """
    entries = {step.digest: _find(step, store) for step in graph.steps}
    needed: set[str] = set()
    seen: set[str] = set()
    waiting = list(graph.goals)
    while waiting:
        step = waiting.pop()
        if step.digest in seen:
            continue
        seen.add(step.digest)
        entries[step.digest] = _verify_artifact(entries[step.digest], entries)
        if entries[step.digest].artifact is None:
            needed.add(step.digest)
            waiting.extend(step.inputs.values())
    result = []
    manifests: dict[str, Manifest] = {}
    for step in graph.steps:
        entry = _plan_absent(entries[step.digest], manifests, store, needed=step.digest in needed)
        if entry.artifact is not None:
            manifests[step.digest] = entry.artifact.manifest
        result.append(entry)
    return result


def _find(step: Step, store: Store) -> Planned:
    """Return a step as stored, damaged, or to build."""
    try:
        artifact = store.find(step.digest, kind=step.kind)
    except StoreError as error:
        return Planned(step=step, state="damaged", artifact=None, problem=error)
    return Planned(step=step, state="stored" if artifact else "build", artifact=artifact)


def _verify_artifact(entry: Planned, entries: Mapping[str, Planned]) -> Planned:
    """Verify a step's artifact, and that its inputs still have the content it was built from."""
    if entry.artifact is None:
        return entry
    inputs = {name: entries[source.digest].artifact for name, source in entry.step.inputs.items()}
    try:
        require_current(
            verified(entry.artifact), {name: of.manifest for name, of in inputs.items() if of}
        )
    except StoreError as error:
        return replace(entry, state="damaged", artifact=None, problem=error)
    return entry


def _plan_absent(
    entry: Planned, manifests: Mapping[str, Manifest], store: Store, *, needed: bool
) -> Planned:
    """Determine whether an absent step is needed, and whether it has to be built."""
    if entry.state == "stored":
        return entry
    if not needed:
        return replace(entry, state="unneeded", problem=None)
    if entry.state == "damaged":
        return entry
    step = entry.step
    if all(source.digest in manifests for source in step.inputs.values()):
        read = {
            name: manifests[source.digest].content_read(step.reads.get(name, InputProjection()))
            for name, source in step.inputs.items()
        }
        same = store.equal(step.kind, step.recipe.content_key(read))
        return replace(entry, state="same", artifact=same) if same else entry
    return replace(entry, state="maybe") if store.could_reuse(step.recipe) else entry


def is_protected(step: Step, inputs: Iterable[Artifact]) -> bool:
    """Return whether a step's artifact is protected: by the step, or through one of its inputs."""
    return step.protected or any(artifact.manifest.protected for artifact in inputs)
