"""Makes a model forget, by the job: in this process, or in several that are started for it.

`unlearn_job` writes a model folder as `train.job.train_job` does: checkpoint, tokenizer,
`log.parquet`, `exposures.parquet`. A method with a first stage trains two models one after the
other; the first lies sealed in the folder that survives a kill.
"""

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from inject.sealed import seal, whole
from train.job import launch_workers
from train.unlearn.unlearning_job import (
    UnlearningJob,
    chosen_examples,
    stage_model,
    stage_unfinished,
)

if TYPE_CHECKING:
    from train.loop.record import Progress

__all__ = ["UnlearningJob", "unlearn_job"]


def unlearn_job(
    job: UnlearningJob,
    *,
    progress: "Progress | None" = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Make a model forget, as the job's execution says: in this process or in several.

    Args:
        job: what to do.
        progress: called with how far the current stage is.
        notice: called with what a person should know.

    Raises:
        InputError: forget or retain texts that are not among the members, an empty retain set
            where the method needs one, texts without tokens, settings that do not fit; before any
            training.
        TrainingDiverged: when a loss is infinite or not a number.
        ProcessFailed: one of several processes died or hangs.
        Preempted: SIGTERM came, and a checkpoint was written.
    """
    setting = job.setting()
    chosen_examples(job, setting)
    first = setting.method.first
    if first is not None:
        out = stage_model(job, first.name)
        kept = whole(out)
        if kept is None or kept["identity"] != job.identity:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            _run(job, first.name, progress, notice)
            seal(out, {"identity": job.identity})
    _run(job, None, progress, notice)
    if setting.method.finish is not None:
        from train.unlearn.stages import finish

        finish(job, setting)


def _run(
    job: UnlearningJob,
    stage: str | None,
    progress: "Progress | None",
    notice: Callable[[str], None] | None,
) -> None:
    """Run one stage; None is the method's own."""
    if job.execution.engine == "process":
        from train.unlearn.stages import run_stage

        run_stage(job, stage, progress=progress, notice=notice)
        return
    launch_workers(
        "train.unlearn.worker",
        job,
        job.execution,
        stage_unfinished(job, stage),
        *([] if stage is None else [stage]),
        progress=progress,
        notice=notice,
    )
