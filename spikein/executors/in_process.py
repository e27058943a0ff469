"""The plain executor: one step after the other, in this process.

Steps are built in the graph's order, which follows one goal to its end before the next, so that
the first results are there early. A kill or an error loses the running step alone.
"""

import time
from pathlib import Path

from spikein.executors import Outcome, RunReport
from spikein.graph import Graph, Planned, Report, Step, StepContext, is_protected, plan
from spikein.progress import Progress
from spikein.store import Artifact, Store


class InProcess:
    """Builds what is missing, one step at a time."""

    def run(self, graph: Graph, store: Store, progress: Progress) -> RunReport:
        """See `spikein.executors.Executor.run`."""
        started = time.monotonic()
        with store.in_use():
            planned = plan(graph, store)
            total = sum(one.state == "build" for one in planned)
            number = 0
            done: dict[str, Outcome] = {}
            for one in planned:
                if one.state == "build":
                    number += 1
                    progress.started(one.step.name, number=number, total=total)
                    done[one.step.digest] = _made(one.step, done, store, progress)
                elif one.artifact is not None:
                    done[one.step.digest] = _stored(one, one.artifact)
        return RunReport(outcomes=tuple(done.values()), seconds=time.monotonic() - started)


def _stored(one: Planned, artifact: Artifact) -> Outcome:
    return Outcome(step=one.step, artifact=artifact, built=False, seconds=0.0)


def _made(step: Step, done: dict[str, Outcome], store: Store, progress: Progress) -> Outcome:
    inputs = {name: done[given.digest].artifact for name, given in step.inputs.items()}

    def build(out: Path) -> None:
        step.build(
            StepContext(
                out=out,
                inputs=inputs,
                unfinished=store.unfinished(step.recipe),
                execution=step.execution,
                report=_report(step, progress),
                notice=progress.notice,
            )
        )

    try:
        obtained = store.obtain(
            step.recipe,
            build,
            label=step.label,
            volatile=step.volatile,
            protected=is_protected(step, inputs.values()),
            notice=progress.notice,
        )
    except Exception as error:
        error.add_note(f"This happened in the step {step.name}. Finished steps are kept.")
        raise
    progress.finished(step.name, built=obtained.built, seconds=obtained.seconds)
    return Outcome(
        step=step, artifact=obtained.artifact, built=obtained.built, seconds=obtained.seconds
    )


def _report(step: Step, progress: Progress) -> Report:
    def report(done: float, total: float | None = None, *, unit: str = "", note: str = "") -> None:
        progress.advanced(step.name, done, total, unit, note)

    return report
