"""One unlearning run as plain values: which model, what to forget, what to keep, how.

`unlearn_job` writes a model folder as `train.job.train_job` does: checkpoint, tokenizer,
`log.parquet`, `exposures.parquet`. A method with a first stage trains two models one after the
other; the first lies in the folder that survives a kill, whole or not at all.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inject.errors import InputError, did_you_mean
from inject.examples.example import Example, members, read_examples
from inject.files import fsync_all, write_text
from inject.settings import Settings
from train.execution import ExecutionSettings
from train.job import NOTICE, PROGRESS, StartModel, process_environment, read_progress_line
from train.launch import launch
from train.processes.heartbeat import HEARTBEATS
from train.unlearn.registry import MethodSetting, parse_methods

if TYPE_CHECKING:
    from train.loop.record import Progress

_STAGES = "stages"
"""Folder of the models of first stages, in the one that survives a kill."""
_MARKED = "finished"


class UnlearningJob(Settings):
    """Everything that an unlearning run needs to know."""

    out: str
    """Folder to write to; it exists and is empty."""
    unfinished: str
    """Folder for checkpoints that survive a kill."""
    identity: str
    """Digest of everything that bears on the run's numbers."""
    original: StartModel
    """The model that is made to forget."""
    examples: str
    """Folder of the examples artifact."""
    forget_ids: tuple[str, ...]
    """Members to be forgotten."""
    retain_ids: tuple[str, ...] = ()
    """Members to be kept; may be empty where the method needs none."""
    method: dict[str, Any]
    """What `train.unlearn.registry.parse_methods` takes, for one setting."""
    execution: ExecutionSettings = ExecutionSettings()
    """Where, and in how many processes."""
    seed: int = 0
    """Decides the order of the texts, which retain text stands beside which, and draws."""

    def setting(self) -> MethodSetting:
        """Return the method and its settings.

        Raises:
            InputError: as `parse_methods`, and for an entry that stands for several settings.
        """
        found = parse_methods([self.method])
        if len(found) != 1:
            raise InputError("a job has one setting", where="method", allowed="no sweep")
        return found[0]


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


def stage_model(job: UnlearningJob, stage: str) -> Path:
    """Return where the model of a first stage lies."""
    return Path(job.unfinished) / _STAGES / stage / "model"


def stage_unfinished(job: UnlearningJob, stage: str | None) -> Path:
    """Return the folder for checkpoints of a stage; None is the method's own."""
    unfinished = Path(job.unfinished)
    return unfinished if stage is None else unfinished / _STAGES / stage / "unfinished"


def _finished(job: UnlearningJob, stage: str) -> bool:
    mark = stage_model(job, stage).with_name(_MARKED)
    return mark.is_file() and mark.read_text(encoding="utf-8") == job.identity


def chosen_examples(
    job: UnlearningJob, setting: MethodSetting
) -> tuple[list[Example], list[Example]]:
    """Return the examples of the forget set and of the retain set, in the job's order.

    Raises:
        InputError: an empty forget set; an id that is not a member's; a text in both sets; an empty
            retain set where the method needs one.
    """
    spiked = {one.example_id: one for one in members(read_examples(Path(job.examples)))}
    if not job.forget_ids:
        raise InputError("the forget set is empty", where="unlearning.forget")
    for name, ids in (("forget", job.forget_ids), ("retain", job.retain_ids)):
        _check_members(ids, spiked, where=f"unlearning.{name}")
    both = sorted(set(job.forget_ids) & set(job.retain_ids))
    if both:
        raise InputError(
            f"{len(both)} texts are in the forget set and in the retain set, the first is "
            f"{both[0]}",
            where="unlearning.retain",
        )
    if setting.needs_retain and not job.retain_ids:
        raise InputError(
            f"the method {setting.method.name} needs a retain set, and this one is empty",
            where="unlearning.retain",
            hint="Let some members stay, or take a method without one, such as npo with "
            "retain_weight 0.",
        )
    return [spiked[one] for one in job.forget_ids], [spiked[one] for one in job.retain_ids]


def _check_members(ids: Sequence[str], spiked: dict[str, Example], *, where: str) -> None:
    strange = [one for one in ids if one not in spiked]
    if strange:
        raise InputError(
            f"{len(strange)} of {len(ids)} texts are not among the members, the first is "
            f"{strange[0]}.{did_you_mean(strange[0], spiked)}",
            where=where,
            hint="A model can only forget, or keep, what it was trained on.",
        )


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
    file = unfinished / "job.json"
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
