"""Where steps run: the protocol of an executor, what it reports, and the executors by name."""

from dataclasses import dataclass
from typing import Protocol

from inject.errors import InputError, did_you_mean
from spikein.pipeline.graph import Graph, Step
from spikein.progress import Progress
from spikein.store.artifact import Artifact, verified
from spikein.store.store import Store

NAMES = ("in-process",)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one step."""

    step: Step
    artifact: Artifact
    built: bool
    """False when the store (or another process) had it."""
    seconds: float
    """Wall clock of this run, waiting included; 0 for what the store held."""


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What became of all steps that the goals needed, in the order of the graph."""

    outcomes: tuple[Outcome, ...]
    seconds: float

    def artifact(self, step: Step) -> Artifact:
        """Return the artifact of a step of the graph, verified.

        Raises:
            KeyError: when the step was neither stored nor needed.
            StoreError: when it was damaged meanwhile, naming the file.
        """
        for outcome in self.outcomes:
            if outcome.step.digest == step.digest:
                return verified(outcome.artifact)
        raise KeyError(step.name)

    @property
    def built(self) -> int:
        """How many steps this run built."""
        return sum(outcome.built for outcome in self.outcomes)


class Executor(Protocol):
    """Runs a graph against a store."""

    def run(self, graph: Graph, store: Store, progress: Progress) -> RunReport:
        """Make every goal; what the store holds is not made again.

        Raises:
            Exception: what a step raised, with a note that names the step. What was finished
                before stays in the store.
        """
        ...


def get_executor(name: str) -> Executor:
    """Return the executor called `name`.

    Raises:
        InputError: when there is none of that name.
    """
    if name == "in-process":
        from spikein.executors.in_process import InProcess

        return InProcess()
    raise InputError(
        f"no executor is called {name!r}.{did_you_mean(name, NAMES)}", allowed=", ".join(NAMES)
    )
