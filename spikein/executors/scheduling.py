"""Schedule steps: independent ones in parallel, each after its inputs.

A pool (worker processes, a Ray cluster, Slurm) builds single steps; this module chooses them. A
step that raises an error fails for good: steps that need it do not start, everything else is
finished, and the final error names it. A step whose process is lost (killed, its machine gone) is
retried a few times. On Ctrl-C and SIGTERM running steps end, with a restart checkpoint if they can.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from inject.errors import unknown_name
from inject.step import Step
from spikein.config.executor_settings import (
    ClusterSettings,
    LocalSettings,
    RaySettings,
    SlurmSettings,
)
from spikein.executors.graph_run import GraphRun, start_graph
from spikein.executors.live_status import TaskFiles
from spikein.executors.protocol import RunReport, StepFailure, StepsFailed
from spikein.executors.task import TaskEnd
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.manifest import StoreError
from spikein.store.store import Store
from train.processes.preemption import Preempted, handle_sigterm

_LOOK_SECONDS = 0.5


class Pool(Protocol):
    """A builder of single steps."""

    def room(self) -> int:
        """Return the number of further steps that can start now."""
        ...

    def begin(self, steps: Sequence[tuple[Step, int]]) -> None:
        """Start steps, each with the number of its attempt, from 1; do not wait for them."""
        ...

    def wait(self, seconds: float) -> Iterable[TaskEnd]:
        """Return the ended steps: at once if there are any, else after `seconds` at most."""
        ...

    def close(self, *, stop: bool) -> None:
        """Release everything that was started; with `stop`, end running steps first."""
        ...


class SideBySide:
    """An executor that builds independent steps in parallel in its own pool."""

    settings: LocalSettings | RaySettings | SlurmSettings

    def require(self, graph: Graph) -> None:
        """Check that a graph can run here.

        Raises:
            InputError: when it cannot run.
        """

    def pool(self, run: GraphRun) -> Pool:
        """Return the pool of a run; called once, when the first step has to be built."""
        raise NotImplementedError

    def run(self, graph: Graph, store: Store, progress: Progress) -> RunReport:
        """See `spikein.executors.Executor.run`.

        Raises:
            StepsFailed: when some steps failed; the others were finished.
            Preempted: on SIGTERM.
        """
        self.require(graph)
        with start_graph(graph, store, progress, executor=self.settings.kind) as run:
            with handle_sigterm() as request:
                schedule = _Schedule(run, self)
                schedule.run(lambda: request.received)
            schedule.require_all()
            return run.report()


class _Schedule:
    """The steps of one run: waiting, ready, running, ended."""

    def __init__(self, run: GraphRun, executor: SideBySide) -> None:
        self._run, self._progress = run, run.progress
        self._make_pool, self._attempts = executor.pool, executor.settings.attempts
        self._pool: Pool | None = None
        self._steps = {step.digest: step for step in self._run.needed}
        self._place_of = {digest: number for number, digest in enumerate(self._steps)}
        self._missing: dict[str, int] = {}
        self._needed_by: dict[str, list[str]] = {digest: [] for digest in self._steps}
        # In the graph's order, so that the first results appear early.
        self._ready: list[tuple[int, str]] = []
        self._running: dict[str, int] = {}
        self._failures: dict[str, StepFailure] = {}
        self._blocked: dict[str, str] = {}
        self._notices: dict[str, list[str]] = {}
        self._finished: set[str] = set()
        for step in [*self._steps.values()]:
            self._await_inputs(step)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Build everything that can be built."""
        stop = True
        try:
            while True:
                self._begin_ready()
                if not self._running:
                    break
                self._wait()
                if stopped():
                    raise Preempted(
                        "ended by SIGTERM. Finished steps and checkpoints are kept: run the same "
                        "command to resume."
                    )
            stop = False
        finally:
            if self._pool is not None:
                self._pool.close(stop=stop)

    def require_all(self) -> None:
        """Check that every step was finished.

        Raises:
            StepsFailed: naming those that were not.
        """
        if self._failures:
            finished = len(self._steps) - len(self._failures) - len(self._blocked)
            raise StepsFailed(
                list(self._failures.values()),
                not_begun=list(self._blocked.values()),
                finished=finished,
            )

    def _await_inputs(self, step: Step) -> None:
        """Start a step once all its inputs that are steps of this run are finished."""
        inputs = {source.digest for source in step.inputs.values()} & self._steps.keys()
        inputs -= self._finished
        self._missing[step.digest] = len(inputs)
        for source in inputs:
            self._needed_by[source].append(step.digest)
        if not inputs:
            self._make_ready(step.digest)

    def _take_up_inputs(self, step: Step) -> bool:
        """Also build inputs that seemed unneeded; return whether there are any.

        A stored step may have been built from content that its inputs no longer have.
        """
        absent = [source for source in step.inputs.values() if source.digest not in self._steps]
        for source in absent:
            if source.digest in self._steps:
                continue
            self._run.take_up(source)
            self._steps[source.digest] = source
            self._place_of[source.digest] = len(self._place_of)
            self._needed_by[source.digest] = []
            if not self._take_up_inputs(source):
                self._await_inputs(source)
        if absent:
            self._await_inputs(step)
        return bool(absent)

    def _make_ready(self, digest: str) -> None:
        heapq.heappush(self._ready, (self._place_of[digest], digest))

    def _begin_ready(self) -> None:
        """Use stored artifacts, and start as many of the others as the pool can take."""
        chosen: list[tuple[Step, int]] = []
        while self._ready:
            step = self._steps[self._ready[0][1]]
            if self._run.stored(step) is not None:
                heapq.heappop(self._ready)
                self._has_ended(step.digest)
                continue
            if self._take_up_inputs(step):
                self._ready = [entry for entry in self._ready if entry[1] != step.digest]
                heapq.heapify(self._ready)
                continue
            if self._pool is None:
                self._pool = self._make_pool(self._run)
            if len(chosen) >= self._pool.room():
                break
            heapq.heappop(self._ready)
            attempt = self._running.get(step.digest, 0) + 1
            chosen.append((step, attempt))
        for step, attempt in chosen:
            self._running[step.digest] = attempt
            if attempt == 1:
                number, total = self._run.next_number()
                self._progress.step_started(step.name, number=number, total=total)
            self._run.status.set(
                step.digest, state="running", began=time.time(), attempt=attempt, where=""
            )
        if chosen and self._pool is not None:
            self._pool.begin(chosen)

    def _wait(self) -> None:
        if self._pool is None:
            return
        ends = list(self._pool.wait(_LOOK_SECONDS))
        self._show_progress()
        for end in ends:
            self._end(end)

    def _end(self, end: TaskEnd) -> None:
        step = self._steps[end.digest]
        if end.state == "done":
            try:
                self._run.built_elsewhere(step, built=end.built, seconds=end.seconds)
            except StoreError as error:
                self._fail(step, str(error))
                return
            self._running.pop(step.digest, None)
            self._has_ended(step.digest)
        elif end.state == "lost" and self._running[step.digest] < self._attempts:
            attempt = self._running[step.digest]
            self._progress.notice(
                f"{step.name}: {end.problem} (attempt {attempt} of {self._attempts}); it is retried"
            )
            self._run.status.set(step.digest, state="waiting", where="", problem=end.problem)
            self._make_ready(step.digest)
        elif end.state == "lost" and self._attempts > 1:
            self._fail(step, f"{end.problem}, in the last of {self._attempts} attempts")
        else:
            self._fail(step, end.problem)

    def _has_ended(self, digest: str) -> None:
        self._finished.add(digest)
        for other in self._needed_by[digest]:
            self._missing[other] -= 1
            if not self._missing[other] and other not in self._blocked:
                self._make_ready(other)

    def _fail(self, step: Step, problem: str) -> None:
        self._running.pop(step.digest, None)
        files = self._files(step.digest)
        lines = files.last_lines() if files else ()
        failure = StepFailure(step.name, problem, lines, str(files.log) if files else "")
        self._failures[step.digest] = failure
        self._run.status.set(step.digest, state="failed", problem=problem, lines=lines, where="")
        self._progress.notice(f"{step.name} failed: {problem}. The other steps continue.")
        waiting = list(self._needed_by[step.digest])
        while waiting:
            digest = waiting.pop()
            if digest not in self._blocked:
                self._blocked[digest] = self._steps[digest].name
                self._run.status.set(digest, state="blocked", problem=f"{step.name} failed")
                waiting += self._needed_by[digest]

    def _show_progress(self) -> None:
        """Forward the notices of running steps."""
        for digest in self._running:
            files = self._files(digest)
            report = files.progress() if files else {}
            if not report or files is None:
                continue
            self._run.status.set(digest, **report)
            name = self._steps[digest].name
            if report.get("done") is not None:
                self._progress.step_advanced(
                    name,
                    report["done"],
                    report.get("total"),
                    report.get("unit", ""),
                    report.get("note", ""),
                )
            notices = self._notices.setdefault(digest, [])
            for text in files.notices():
                if text not in notices:
                    notices.append(text)
                    self._progress.notice(f"{name}: {text}")

    def _files(self, digest: str) -> TaskFiles | None:
        folder = self._run.status.folder
        return TaskFiles(folder, digest) if folder else None


def require_known_kinds(settings: ClusterSettings, graph: Graph) -> None:
    """Check that every kind with its own request is the kind of some step.

    Raises:
        InputError: for a kind without steps, whose request would have no effect.
    """
    kinds = sorted({step.kind for step in graph.steps})
    for kind in settings.steps:
        if kind not in kinds:
            place = f"executor.steps.{kind}"
            raise unknown_name(f"no step has the kind {kind!r}", kind, kinds, where=place)
