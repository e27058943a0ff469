"""The step graph: what has to be made, out of what, and how.

A `Step` keeps its identity (kind, version, settings, inputs, libraries) apart from its execution
(device, workers, batch size of scoring …), which never enters the digest. Two steps with one
digest are one step. A graph is its goals; the rest follows from their inputs.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from spikein.manifest import Recipe, library_versions
from spikein.store import Artifact, Store


class Report(Protocol):
    """How a step tells how far it is."""

    def __call__(
        self, done: float, total: float | None = None, *, unit: str = "", note: str = ""
    ) -> None:
        """Say that `done` of `total` units are finished; `note` is a short text such as a loss."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """What a step's `build` is given."""

    out: Path
    """An empty folder; everything written below it becomes the artifact."""
    inputs: Mapping[str, Artifact]
    """The finished inputs by name; `inputs["corpus"].path` is the folder."""
    unfinished: Path
    """A folder for parts that a killed build leaves behind and the next one takes up. It is
    created by whoever needs it, lies on the file system of `out`, and goes when the artifact is
    published; nothing in it may bear on the content."""
    execution: Any
    """The step's execution settings."""
    report: Report
    notice: Callable[[str], None] = lambda _text: None
    """Tells a person what he should know, such as that a checkpoint was damaged."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a step is expected to take, for `spikein plan`; None where nobody can say."""

    tokens: int | None = None
    """Tokens passed through a model."""
    flops: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    seconds: float | None = None
    """On this machine."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One node: makes one artifact out of others."""

    kind: str
    """Folder of the store, such as `corpus`."""
    label: str
    """For people: part of the folder's name."""
    version: int = 1
    """Raised when the code of `build` changes what it writes."""
    settings: Mapping[str, Any]
    """Everything else that bears on the content, as plain JSON values."""
    inputs: Mapping[str, "Step"] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    """Distributions whose version bears on the content, such as `torch`."""
    volatile: tuple[str, ...] = ()
    """Patterns of files that differ from build to build."""
    protected: bool = False
    """The artifact holds texts that must not be shared; whoever reads it inherits the mark."""
    execution: Any = None
    """Where and how it runs; never part of the identity."""
    build: Callable[[StepContext], None]
    """Writes the artifact's files; must not touch anything else."""
    cost: Cost | None = None

    @cached_property
    def recipe(self) -> Recipe:
        """The identity."""
        return Recipe(
            kind=self.kind,
            version=self.version,
            settings=self.settings,
            inputs={name: step.digest for name, step in self.inputs.items()},
            libraries=library_versions(self.libraries),
        )

    @property
    def digest(self) -> str:
        """The digest of the recipe."""
        return self.recipe.digest

    @property
    def name(self) -> str:
        """`kind label`, for messages."""
        return f"{self.kind} {self.label}"


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The steps that lead to the goals."""

    goals: tuple[Step, ...]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every step once, inputs before what needs them.

        The order follows from the goals' order and the inputs' names alone.
        """
        found: dict[str, Step] = {}

        def visit(step: Step) -> None:
            if step.digest in found:
                return
            for name in sorted(step.inputs):
                visit(step.inputs[name])
            found[step.digest] = step

        for goal in self.goals:
            visit(goal)
        return tuple(found.values())


State = Literal["stored", "build", "unneeded"]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One step of a plan."""

    step: Step
    state: State
    """`stored`: nothing to do; `build`: will be made; `unneeded`: absent, and nothing that has
    to be made reads it."""
    artifact: Artifact | None


def plan(graph: Graph, store: Store) -> list[Planned]:
    """Return what running the graph would do, in the order of the steps; builds nothing.

    Raises:
        StoreError: when a stored artifact is damaged.
    """
    stored = {step.digest: store.find(step.digest, kind=step.kind) for step in graph.steps}
    needed: set[str] = set()
    waiting = list(graph.goals)
    while waiting:
        step = waiting.pop()
        if stored[step.digest] is None and step.digest not in needed:
            needed.add(step.digest)
            waiting.extend(step.inputs.values())
    result = []
    for step in graph.steps:
        artifact = stored[step.digest]
        state: State = "stored" if artifact else "build" if step.digest in needed else "unneeded"
        result.append(Planned(step=step, state=state, artifact=artifact))
    return result


def is_protected(step: Step, inputs: Iterable[Artifact]) -> bool:
    """Return whether a step's artifact carries the mark: its own, or one of its inputs'."""
    return step.protected or any(artifact.manifest.protected for artifact in inputs)
