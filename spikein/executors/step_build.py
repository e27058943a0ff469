"""The build of one step: what every executor does for every step, wherever it runs.

What a step reads is verified before it is built and compared again afterwards. Several processes
may build one step at the same time: one of them builds it, the others wait and take its artifact.
"""

from collections.abc import Mapping
from pathlib import Path

from inject.source_digest import require_unedited
from inject.step import Report, Step, StepContext, find_function
from spikein.executors.protocol import Outcome
from spikein.pipeline.graph import is_protected
from spikein.progress import Progress
from spikein.store.artifact import Artifact, verified
from spikein.store.store import ArtifactRules, Store


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
