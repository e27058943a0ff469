"""The plain executor: one step after the other, in this process.

Steps are built in the graph's order, which follows one goal to its end before the next, so that
the first results are there early. A kill or an error loses the running step alone.

What a step reads is verified before it is built and looked at again afterwards. A stored artifact
is taken only after its inputs: where one of them was built again and came out otherwise, the
artifact is built again, too.
"""

import time
from pathlib import Path

from inject.source_digest import require_unedited
from spikein.executors import Outcome, RunReport
from spikein.pipeline.graph import Graph, Planned, Report, Step, StepContext, is_protected, plan
from spikein.progress import Progress
from spikein.store.artifact import Artifact, require_current, verified
from spikein.store.manifest import StoreError
from spikein.store.store import ArtifactRules, BuildResult, Store


class InProcess:
    """Builds what is missing or damaged, one step at a time."""

    def run(self, graph: Graph, store: Store, progress: Progress) -> RunReport:
        """See `spikein.executors.Executor.run`."""
        started = time.monotonic()
        with store.in_use(required=False):
            work = _Work(plan(graph, store), store, progress)
            progress.run_started([one.step for one in work.planned.values() if one.to_do])
            for one in work.planned.values():
                if one.state != "unneeded":
                    work.settled(one.step)
        order = [work.done[step.digest] for step in graph.steps if step.digest in work.done]
        return RunReport(outcomes=tuple(order), seconds=time.monotonic() - started)


class _Work:
    """A plan that is being carried out."""

    def __init__(self, planned: list[Planned], store: Store, progress: Progress) -> None:
        self.planned = {one.step.digest: one for one in planned}
        self.done: dict[str, Outcome] = {}
        self._store = store
        self._progress = progress
        self._total = sum(one.to_do for one in planned)
        self._number = 0

    def settled(self, step: Step) -> Outcome:
        """Return a step's artifact, made now where it is not there as it should be."""
        if step.digest not in self.done:
            self.done[step.digest] = self._stored(step) or self._made(step)
        return self.done[step.digest]

    def _stored(self, step: Step) -> Outcome | None:
        one = self.planned[step.digest]
        if one.state != "stored" or one.artifact is None:
            return None
        found = {
            name: self.done[given.digest].artifact.manifest
            for name, given in step.inputs.items()
            if given.digest in self.done
        }
        try:
            require_current(one.artifact, found)
        except StoreError:
            self._total += 1
            return None
        return Outcome(step=step, artifact=one.artifact, built=False, seconds=0.0)

    def _made(self, step: Step) -> Outcome:
        inputs = {name: self.settled(given).artifact for name, given in step.inputs.items()}
        self._number += 1
        try:
            obtained = self._obtained(step, inputs)
        except Exception as error:
            error.add_note(f"This happened in the step {step.name}. Finished steps are kept.")
            raise
        twin = obtained.same_as
        self._progress.step_finished(
            step.name,
            built=obtained.built,
            seconds=obtained.seconds,
            same_as=f"{twin.path.parent.name}/{twin.path.name}" if twin else None,
        )
        return Outcome(
            step=step, artifact=obtained.artifact, built=obtained.built, seconds=obtained.seconds
        )

    def _obtained(self, step: Step, inputs: dict[str, Artifact]) -> BuildResult:
        def build(out: Path) -> None:
            self._progress.step_started(
                step.name, number=self._number, total=max(self._total, self._number)
            )
            self._require_inputs(step, inputs)
            require_unedited(step.code)
            step.build(
                StepContext(
                    out=out,
                    inputs=inputs,
                    unfinished=self._store.unfinished(step.recipe),
                    execution=step.execution,
                    report=_report(step, self._progress),
                    notice=self._progress.notice,
                )
            )
            # What was edited while it was read must not stand under the digest of before.
            self._require_inputs(step, inputs)

        return self._store.obtain(
            step.recipe,
            build,
            label=step.label,
            inputs=inputs,
            rules=ArtifactRules(
                volatile=step.volatile,
                protected=is_protected(step, inputs.values()),
                reads=step.reads,
                facets=step.facets,
            ),
            notice=self._progress.notice,
        )

    def _require_inputs(self, step: Step, inputs: dict[str, Artifact]) -> None:
        for name, artifact in inputs.items():
            reading = step.reads.get(name)
            verified(artifact, ("*",) if reading is None else reading.files)


def _report(step: Step, progress: Progress) -> Report:
    def report(done: float, total: float | None = None, *, unit: str = "", note: str = "") -> None:
        progress.step_advanced(step.name, done, total, unit, note)

    return report
