"""Makes a model forget, by the job: in this process, or in several that are started for it.

`unlearn_job` writes a model folder as `train.job.train_job` does: checkpoint, tokenizer,
`log.parquet`, `exposures.parquet`. A method with a first stage trains two models one after the
other; the first lies in the folder that survives a kill, whole or not at all.
"""

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from inject.files import fsync_all, write_text
from train.job import JOB_FILE, NOTICE, PROGRESS, process_environment, read_progress_line
from train.launch import launch
from train.processes.heartbeat import HEARTBEATS
from train.unlearn.unlearning_job import (
    UnlearningJob,
    chosen_examples,
    stage_model,
    stage_unfinished,
)

if TYPE_CHECKING:
    from train.loop.record import Progress

__all__ = ["UnlearningJob", "unlearn_job"]

_MARKED = "finished"
"""Beside the model of a first stage that is whole: the identity of its run."""


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
    if first is not None and not _finished(job, first.name):
        out = stage_model(job, first.name)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        _run(job, first.name, progress, notice)
        # Flushed before the mark: a mark without the model would end every later start.
        fsync_all([path for path in out.rglob("*") if path.is_file()])
        write_text(out.parent / _MARKED, job.identity)
    _run(job, None, progress, notice)
    if setting.method.finish is not None:
        from train.unlearn.stages import finish

        finish(job, setting)


def _finished(job: UnlearningJob, stage: str) -> bool:
    mark = stage_model(job, stage).with_name(_MARKED)
    return mark.is_file() and mark.read_text(encoding="utf-8") == job.identity


def _run(
    job: UnlearningJob,
    stage: str | None,
    progress: "Progress | None",
    notice: Callable[[str], None] | None,
) -> None:
    """Run one stage; None is the method's own."""
    execution = job.execution
    if execution.engine == "process":
        from train.unlearn.stages import run_stage

        run_stage(job, stage, progress=progress, notice=notice)
        return
    unfinished = stage_unfinished(job, stage)
    file = unfinished / JOB_FILE
    write_text(file, job.model_dump_json(indent=1))

    def on_line(line: str) -> None:
        if progress is not None and line.startswith(PROGRESS):
            progress(read_progress_line(line))
        if notice is not None and line.startswith(NOTICE):
            notice(line.removeprefix(NOTICE))

    launch(
        "train.unlearn.worker",
        [str(file), *([] if stage is None else [stage])],
        processes=execution.processes,
        environment=process_environment(execution, unfinished),
        on_line=on_line,
        heartbeats=unfinished / HEARTBEATS,
        silent_after=execution.silent_after,
    )
