"""The protocol of an executor: its method, its result, and its error for failed steps.

An executor decides only where and when the steps of a graph are built: a step's output depends
only on its recipe, so no executor ever enters an identity, and two executors produce the same
artifacts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from inject.errors import InputError, SpikeinError, first_names
from inject.step import Step
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.artifact import Artifact, verified
from spikein.store.store import Store

_MOST_NAMES = 6


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Step outcome."""

    step: Step
    artifact: Artifact
    built: bool
    """False when the store (or another process) had it."""
    seconds: float
    """Wall-clock seconds of this run, waiting included; 0 for a stored artifact."""


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Outcomes of all steps that the goals needed, in the order of the graph."""

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
        """Number of steps that this run built."""
        return sum(outcome.built for outcome in self.outcomes)


class StepFailure(NamedTuple):
    """One step that failed for good."""

    name: str
    problem: str
    """Why, in one or a few lines."""
    lines: tuple[str, ...] = ()
    """The last lines of its log."""
    log: str = ""
    """Path of the whole log."""

    def __str__(self) -> str:
        text = f"{self.name}: {self.problem}"
        text += "".join(f"\n    {line}" for line in self.lines)
        return text + (f"\n    The whole log: {self.log}" if self.log else "")


class StepsFailed(SpikeinError):
    """Some steps failed; every step that needs none of them was finished."""

    exit_code: ClassVar[int] = 3

    def __init__(
        self, failures: Sequence[StepFailure], *, not_begun: Sequence[str], finished: int
    ) -> None:
        self.failures = tuple(failures)
        self.not_begun = tuple(not_begun)
        """The names of the steps that need one that failed."""
        number = len(self.failures)
        lines = [f"{number} step{'s' if number > 1 else ''} failed; {finished} finished."]
        lines += [f"  {failure}" for failure in self.failures]
        if self.not_begun:
            lines.append(
                "Not started, since they need failed steps: "
                f"{first_names(self.not_begun, _MOST_NAMES)}."
            )
        lines.append("Finished steps are kept; run the same command again to try the others.")
        lines.append(
            "A report needs every arm. For a report on the finished arms, run the experiment "
            "without the failed ones: none of the others is built again."
        )
        super().__init__("\n".join(lines))


class Executor(Protocol):
    """Runs a graph against a store.

    A custom executor is an object, or a class without constructor arguments, with this one method;
    its first docstring line is its description in lists. `spikein.executors.start_graph` does the
    bookkeeping of a graph, `spikein.executors.build_step` builds one step.
    """

    def run(self, graph: Graph, store: Store, progress: Progress) -> RunReport:
        """Build the artifact of every goal; stored artifacts are not built again.

        Args:
            graph: the steps; `graph.steps` names every step after its inputs.
            store: the store of the artifacts.
            progress: receives the events of the run.

        Returns:
            An outcome for every step that was stored or built; every goal has one.

        Raises:
            Exception: as a step raises, with a note that names the step. Finished steps stay in
                the store.
        """
        ...


def run_graph(executor: Executor, graph: Graph, store: Store, progress: Progress) -> RunReport:
    """Run a graph, and check that the executor built every goal.

    Args:
        executor: where and when steps are built.
        graph: the steps.
        store: the store of the artifacts.
        progress: receives the events of the run.

    Raises:
        InputError: when the executor returns no report, or one without the artifact of a goal.
        Exception: as a step raises.
    """
    report = executor.run(graph, store, progress)
    if problem := _report_problem(report, graph, store):
        raise InputError(
            problem,
            where=f"executor {type(executor).__name__}",
            hint="Build every goal of the graph by spikein.executors.build_step in the store that "
            "run is given, and return spikein.executors.RunReport with an outcome for each.",
        )
    return report


def _report_problem(report: object, graph: Graph, store: Store) -> str:
    """Return the problem of an executor's report; empty if it has none."""
    if not isinstance(report, RunReport):
        return f"run returned {type(report).__name__}, not a RunReport"
    artifacts = {outcome.step.digest: outcome.artifact for outcome in report.outcomes}
    for goal in graph.goals:
        artifact = artifacts.get(goal.digest)
        if artifact is None:
            return f"has no outcome for the step {goal.name}"
        if artifact.digest != goal.digest:
            name = artifact.path.name
            return (
                f"returned the artifact {name} for the step {goal.name}, which has another digest"
            )
        if artifact.path.resolve().parent.parent != store.root.resolve():
            folder = artifact.path.parent.parent
            return f"built the step {goal.name} in {folder}, not in the store {store.root}"
    return ""
