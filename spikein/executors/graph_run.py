"""The bookkeeping of a running graph, the build of one step, and the plain executor.

A stored artifact is used only after its inputs: if one of them was rebuilt with other content, the
artifact is also rebuilt. `spikein status` shows what is recorded here.

Every executor builds every step by `build_step`, wherever it runs. What a step reads is verified
before it is built and compared again afterwards. Several processes may build one step at the same
time: one of them builds it, the others wait and take its artifact.
"""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from inject.source_digest import require_unedited
from inject.step import Report, Step, StepContext, find_function
from spikein.executors.live_status import LiveStatus, RunStatus, StepStatus, goals_key
from spikein.executors.protocol import Outcome, RunReport
from spikein.pipeline.graph import Graph, is_protected, plan
from spikein.progress import Progress
from spikein.store.artifact import Artifact, require_current, verified
from spikein.store.manifest import StoreError
from spikein.store.store import ArtifactRules, Store


@contextmanager
def start_graph(
    graph: Graph, store: Store, progress: Progress, *, executor: str = ""
) -> Iterator["GraphRun"]:
    """Plan a graph, and protect the store from garbage collection while it runs.

    Args:
        graph: the steps.
        store: the store of the artifacts.
        progress: receives the events of the run.
        executor: the executor's name in `spikein status`.
    """
    with store.in_use(required=False):
        run = GraphRun(graph, store, progress, executor=executor)
        try:
            yield run
        except (KeyboardInterrupt, GeneratorExit):
            run.status.close("interrupted")
            raise
        except BaseException as error:
            run.status.close("interrupted" if getattr(error, "exit_code", 0) > 128 else "failed")
            raise
        run.status.close("finished")


class GraphRun:
    """A running graph. Not thread-safe."""

    def __init__(
        self, graph: Graph, store: Store, progress: Progress, *, executor: str = ""
    ) -> None:
        self._began = time.monotonic()
        self.graph = graph
        self.store = store
        self.progress = progress
        planned = plan(graph, store)
        self._planned = {entry.step.digest: entry for entry in planned}
        self._outcomes: dict[str, Outcome] = {}
        self._total = sum(entry.to_do for entry in planned)
        self._number = 0
        self.needed = tuple(entry.step for entry in planned if entry.state != "unneeded")
        """The steps that the goals need, stored ones included, each after its inputs."""
        status = RunStatus(
            name=graph.name,
            key=goals_key(graph.goals),
            executor=executor,
            host=socket.gethostname(),
            process=os.getpid(),
            began=time.time(),
            updated=time.time(),
            state="running",
            steps=tuple(
                _step_status(entry.step, stored=entry.state == "stored")
                for entry in planned
                if entry.state != "unneeded"
            ),
        )
        self.status = LiveStatus(store.root, status)
        """The status of this run for `spikein status`."""
        progress.run_started([entry.step for entry in planned if entry.to_do])

    def obtain(self, step: Step) -> Outcome:
        """Return the artifact of a step, built now, with its inputs, unless the store has it.

        Raises:
            Exception: as a step raises, with a note that names it.
        """
        if self.stored(step) is None:
            for source in step.inputs.values():
                self.obtain(source)
            self._build_here(step)
        return self._outcomes[step.digest]

    def stored(self, step: Step) -> Outcome | None:
        """Return the artifact that the store had before the run; None if it has to be built.

        The inputs must have an outcome.
        """
        if step.digest in self._outcomes:
            return self._outcomes[step.digest]
        entry = self._planned[step.digest]
        if entry.state != "stored" or entry.artifact is None:
            return None
        inputs = {
            name: self._outcomes[source.digest].artifact.manifest
            for name, source in step.inputs.items()
            if source.digest in self._outcomes
        }
        try:
            require_current(entry.artifact, inputs)
        except StoreError:
            self._total += 1
            return None
        return self._record(Outcome(step=step, artifact=entry.artifact, built=False, seconds=0.0))

    def take_up(self, step: Step) -> None:
        """Mark a step as needed after all.

        This happens when a stored step was built from content that its inputs no longer have.
        """
        self.status.add(_step_status(step))

    @property
    def left(self) -> int:
        """Maximum number of steps that remain to be built."""
        return sum(step.digest not in self._outcomes for step in self.needed)

    def next_number(self) -> tuple[int, int]:
        """Return the number of the step that starts now, from 1, and the total to build."""
        self._number += 1
        return self._number, max(self._total, self._number)

    def built_elsewhere(self, step: Step, *, built: bool, seconds: float) -> Outcome:
        """Record a step that another process has finished.

        Raises:
            StoreError: for an artifact that is missing or damaged.
        """
        artifact = self.store.find(step.digest, kind=step.kind)
        if artifact is None:
            raise StoreError(
                f"the step {step.name} was reported as finished but is not in the store",
                where=str(self.store.root),
                hint="All machines of a run must share the folder of the store.",
            )
        self.progress.step_finished(step.name, built=built, seconds=seconds)
        return self._record(Outcome(step=step, artifact=artifact, built=built, seconds=seconds))

    def report(self) -> RunReport:
        """Return the outcomes of the steps so far."""
        steps = (step for step in self.graph.steps if step.digest in self._outcomes)
        return RunReport(
            outcomes=tuple(self._outcomes[step.digest] for step in steps),
            seconds=time.monotonic() - self._began,
        )

    def _record(self, outcome: Outcome) -> Outcome:
        self._outcomes[outcome.step.digest] = outcome
        if self._planned[outcome.step.digest].state != "stored" or outcome.built:
            self.status.set(
                outcome.step.digest,
                state="done",
                seconds=outcome.seconds,
                where="",
                problem="",
                lines=(),
            )
        return outcome

    def _build_here(self, step: Step) -> None:
        inputs = {
            name: self._outcomes[source.digest].artifact for name, source in step.inputs.items()
        }
        number, total = self.next_number()
        self.take_up(step)
        self.status.set(
            step.digest,
            state="running",
            where=f"process {os.getpid()} on {socket.gethostname()}",
            began=time.time(),
            attempt=1,
        )

        def report(
            done: float, total: float | None = None, *, unit: str = "", note: str = ""
        ) -> None:
            self.status.set(step.digest, done=done, total=total, unit=unit, note=note)
            self.progress.step_advanced(step.name, done, total, unit, note)

        try:
            outcome = build_step(
                step,
                inputs,
                self.store,
                self.progress,
                number=number,
                total=total,
                report=report,
            )
        except Exception as error:
            self.status.set(step.digest, state="failed", problem=str(error))
            raise
        self._record(outcome)


class InProcess:
    """One step after the other, in this process."""

    def run(self, graph: Graph, store: Store, progress: Progress) -> RunReport:
        """See `spikein.executors.Executor.run`.

        Steps are built in the graph's order, which completes one goal before the next, so that the
        first results appear early. A kill or an error loses only the running step.
        """
        with start_graph(graph, store, progress, executor="in-process") as run:
            for step in run.needed:
                run.obtain(step)
            return run.report()


def _step_status(step: Step, *, stored: bool = False) -> StepStatus:
    return StepStatus(
        digest=step.digest,
        name=step.name,
        kind=step.kind,
        state="done" if stored else "waiting",
        stored=stored,
        needs=tuple(source.digest for source in step.inputs.values()),
    )


def build_step(
    step: Step,
    inputs: Mapping[str, Artifact],
    store: Store,
    progress: Progress,
    *,
    number: int = 1,
    total: int = 1,
    report: Report | None = None,
) -> Outcome:
    """Return the artifact of a step, built unless the store has it.

    Args:
        step: the step.
        inputs: the artifacts of its inputs, by name.
        store: the store to build it in.
        progress: receives the events of the step.
        number: of this step among those that the run builds, from 1; for display.
        total: the number of steps that the run builds; for display.
        report: called with the progress of the step; None to notify only `progress`.

    Raises:
        Exception: as the step raises, with a note that names it.
    """

    def build(out: Path) -> None:
        progress.step_started(step.name, number=number, total=max(total, number))
        _require_inputs(step, inputs)
        require_unedited(step.roots)
        settings, execution = step.json_values()
        find_function(step.function)(
            StepContext(
                out=out,
                inputs={name: artifact.path for name, artifact in inputs.items()},
                settings=settings,
                execution=execution,
                unfinished=store.unfinished(step.recipe),
                report=report or _report(step, progress),
                protected=is_protected(step, inputs.values()),
                notice=progress.notice,
            )
        )
        # Inputs edited while they were read must not be stored under their old digest.
        _require_inputs(step, inputs)

    try:
        obtained = store.obtain(
            step.recipe,
            build,
            label=step.label,
            inputs=inputs,
            rules=ArtifactRules(
                volatile=step.volatile,
                protected=is_protected(step, inputs.values()),
                reads=step.reads,
                facets={name: find_function(facet) for name, facet in step.facets.items()},
            ),
            notice=progress.notice,
        )
    except Exception as error:
        error.add_note(f"This happened in the step {step.name}. Finished steps are kept.")
        raise
    twin = obtained.same_as
    progress.step_finished(
        step.name,
        built=obtained.built,
        seconds=obtained.seconds,
        same_as=f"{twin.path.parent.name}/{twin.path.name}" if twin else None,
    )
    return Outcome(
        step=step, artifact=obtained.artifact, built=obtained.built, seconds=obtained.seconds
    )


def _require_inputs(step: Step, inputs: Mapping[str, Artifact]) -> None:
    for name, artifact in inputs.items():
        reading = step.reads.get(name)
        verified(artifact, ("*",) if reading is None else reading.files)


def _report(step: Step, progress: Progress) -> Report:
    def report(done: float, total: float | None = None, *, unit: str = "", note: str = "") -> None:
        progress.step_advanced(step.name, done, total, unit, note)

    return report
