"""The bookkeeping of a graph that is run, the build of one step, and the plain executor.

A stored artifact is taken only after its inputs: where one of them was built again and came out
otherwise, the artifact is built again, too. Whatever is recorded here is seen by `spikein status`.

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
from spikein.pipeline.graph import Graph, Planned, is_protected, plan
from spikein.progress import Progress
from spikein.store.artifact import Artifact, require_current, verified
from spikein.store.manifest import StoreError
from spikein.store.store import ArtifactRules, Store


@contextmanager
def start_graph(
    graph: Graph, store: Store, progress: Progress, *, executor: str = ""
) -> Iterator["GraphRun"]:
    """Plan a graph, and protect the store from garbage collection while it is run.

    Args:
        graph: the steps.
        store: where artifacts are found and built.
        progress: receives the events of the run.
        executor: what to call the executor in `spikein status`.
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
    """A graph that is being run. Not for several threads at once."""

    def __init__(
        self, graph: Graph, store: Store, progress: Progress, *, executor: str = ""
    ) -> None:
        self._began = time.monotonic()
        self.graph = graph
        self.store = store
        self.progress = progress
        planned = plan(graph, store)
        self._planned = {one.step.digest: one for one in planned}
        self._outcomes: dict[str, Outcome] = {}
        self._total = sum(one.to_do for one in planned)
        self._number = 0
        self.needed = tuple(one.step for one in planned if one.state != "unneeded")
        """The steps that the goals need, stored ones included, each after its inputs."""
        self.status = LiveStatus(store.root, _first_status(graph, planned, executor))
        """What `spikein status` shows of this run."""
        progress.run_started([one.step for one in planned if one.to_do])

    def obtain(self, step: Step) -> Outcome:
        """Return the artifact of a step, built now, with its inputs, unless the store has it.

        Raises:
            Exception: what a step raised, with a note that names it.
        """
        if self.stored(step) is None:
            for given in step.inputs.values():
                self.obtain(given)
            self._build_here(step)
        return self._outcomes[step.digest]

    def stored(self, step: Step) -> Outcome | None:
        """Return what the store had of a step before the run; None if it has to be built.

        The inputs must have an outcome.
        """
        if step.digest in self._outcomes:
            return self._outcomes[step.digest]
        one = self._planned[step.digest]
        if one.state != "stored" or one.artifact is None:
            return None
        inputs = {
            name: self._outcomes[given.digest].artifact.manifest
            for name, given in step.inputs.items()
            if given.digest in self._outcomes
        }
        try:
            require_current(one.artifact, inputs)
        except StoreError:
            self._total += 1
            return None
        return self._record(Outcome(step=step, artifact=one.artifact, built=False, seconds=0.0))

    def take_up(self, step: Step) -> None:
        """Count a step as needed that did not seem to be.

        So it is where a stored step turns out to be made of what its inputs no longer hold.
        """
        self.status.add(_step_status(step))

    @property
    def left(self) -> int:
        """How many steps may still have to be built."""
        return sum(one.digest not in self._outcomes for one in self.needed)

    def next_number(self) -> tuple[int, int]:
        """Return the place of a step that is begun now, from 1, and how many will be built."""
        self._number += 1
        return self._number, max(self._total, self._number)

    def built_elsewhere(self, step: Step, *, built: bool, seconds: float) -> Outcome:
        """Record a step that another process has finished.

        Raises:
            StoreError: it is not in the store, or damaged.
        """
        artifact = self.store.find(step.digest, kind=step.kind)
        if artifact is None:
            raise StoreError(
                f"the step {step.name} is said to be finished and is not in the store",
                where=str(self.store.root),
                hint="All machines of a run must share the folder of the store.",
            )
        self.progress.step_finished(step.name, built=built, seconds=seconds)
        return self._record(Outcome(step=step, artifact=artifact, built=built, seconds=seconds))

    def report(self) -> RunReport:
        """Return what became of the steps so far."""
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
        inputs = {name: self._outcomes[one.digest].artifact for name, one in step.inputs.items()}
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

        Steps are built in the graph's order, which follows one goal to its end before the next, so
        that the first results are there early. A kill or an error loses the running step alone.
        """
        with start_graph(graph, store, progress, executor="in-process") as run:
            for step in run.needed:
                run.obtain(step)
            return run.report()


def _first_status(graph: Graph, planned: list[Planned], executor: str) -> RunStatus:
    return RunStatus(
        name=graph.name,
        key=goals_key(graph.goals),
        executor=executor,
        host=socket.gethostname(),
        process=os.getpid(),
        began=time.time(),
        updated=time.time(),
        state="running",
        steps=tuple(
            _step_status(one.step, stored=one.state == "stored")
            for one in planned
            if one.state != "unneeded"
        ),
    )


def _step_status(step: Step, *, stored: bool = False) -> StepStatus:
    return StepStatus(
        digest=step.digest,
        name=step.name,
        kind=step.kind,
        state="done" if stored else "waiting",
        stored=stored,
        needs=tuple(given.digest for given in step.inputs.values()),
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
        store: where it is built.
        progress: receives the events of the step.
        number: of this step among those that the run builds, from 1; for people.
        total: how many steps the run builds; for people.
        report: called with how far the step is; None to tell `progress` alone.

    Raises:
        Exception: what the step raised, with a note that names it.
    """

    def build(out: Path) -> None:
        progress.step_started(step.name, number=number, total=max(total, number))
        _require_inputs(step, inputs)
        require_unedited(step.roots)
        settings, execution = step.given()
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
        # What was edited while it was read must not stand under the digest of before.
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
                facets={name: find_function(one) for name, one in step.facets.items()},
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
