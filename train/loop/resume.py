"""Resuming a killed run: the content of a restart checkpoint, and its selection or rejection.

A checkpoint contains the trainer's files (weights in safetensors, optimiser, schedule, random
state) and ours: the exposures and the log so far, and a manifest (`inject.verified_files`), written
last. One without a manifest is half-written; one with changed files, or after a damaged kept model,
is never used: the previous one is, and a notice reports it. The manifest names the run, by the
digest of everything that affects its numbers; a checkpoint of another run is rejected. Two complete
ones are kept, and the older is removed when a third is complete: the disk has up to three.
"""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from inject.errors import InputError
from inject.model_folder import checkpoint_folder
from inject.verified_files import MANIFEST, IntegrityError, flush, read_facts, seal, verify
from train.execution import ExecutionSettings
from train.loop.log import read_log, write_log
from train.loop.record import Record, Recorder
from train.processes.environment import (
    barrier,
    local_rank,
    rank,
    sum_over_processes,
    world_size,
)

MAX_CHECKPOINTS = 2
"""Number of complete checkpoints to keep."""
_NAME = re.compile(r"checkpoint-(\d+)")


def find_resume_point(
    unfinished: Path | None,
    identity: str,
    execution: ExecutionSettings | None = None,
    model_steps: Sequence[int] = (),
    notice: Callable[[str], None] | None = None,
) -> Path | None:
    """Return the newest complete checkpoint below a folder, or None; later ones are removed.

    Args:
        unfinished: the folder; None if nothing is kept.
        identity: digest of everything that affects the run's numbers.
        execution: settings for the resumed run; None for only this process.
        model_steps: steps of kept models; a checkpoint is valid only with those before it.
        notice: called with the unusable checkpoints, the reasons, and the alternative.

    Raises:
        InputError: a checkpoint there belongs to another run, or was saved by DeepSpeed in another
            number of processes or another engine, which cannot read its parts.
    """
    if unfinished is None or not unfinished.is_dir():
        return None
    folders = _checkpoints(unfinished)
    for folder in folders.values():
        try:
            facts = read_facts(folder)
        except IntegrityError:
            continue
        _check_run(facts, folder, identity)
        _check_engine(facts, folder, execution or ExecutionSettings())
    unusable: list[str] = []
    for step in sorted(folders, reverse=True):
        reason = _find_damage(
            folders[step], unfinished, [other for other in model_steps if other <= step]
        )
        if reason is None:
            _notify(notice, unusable, f"Training resumes from the checkpoint of step {step}.")
            return folders[step]
        unusable.append(f"The checkpoint of step {step} cannot be used: {reason}.")
        _remove(folders[step])
    _notify(notice, unusable, "No complete checkpoint is left: training starts over.")
    return None


def shared_resume_point(
    unfinished: Path | None,
    identity: str,
    execution: ExecutionSettings,
    model_steps: Sequence[int],
    notice: Callable[[str], None] | None,
) -> Path | None:
    """Return the first process's `find_resume_point`, in every process.

    Raises:
        InputError: as there, in the first process.
    """
    if unfinished is None:
        return None
    point = None
    if rank() == 0:
        point = find_resume_point(unfinished, identity, execution, model_steps, notice)
    # Steps count from 1, so 0 means none.
    own_step = 0 if point is None else int(point.name.removeprefix("checkpoint-"))
    step = round(sum_over_processes([float(own_step)])[0])
    return unfinished / f"checkpoint-{step}" if step else None


def _checkpoints(unfinished: Path) -> dict[int, Path]:
    """Return the folders of checkpoints, complete or not, by their steps."""
    named = ((folder, _NAME.fullmatch(folder.name)) for folder in unfinished.glob("checkpoint-*"))
    return {int(match.group(1)): folder for folder, match in named if match is not None}


def _find_damage(folder: Path, unfinished: Path, model_steps: Sequence[int]) -> str | None:
    """Return why a checkpoint, or a model kept before it, cannot be used; None if it can."""
    try:
        verify(folder)
    except IntegrityError as damage:
        return str(damage)
    for step in model_steps:
        model = unfinished / checkpoint_folder(step)
        try:
            if not model.is_dir():
                raise IntegrityError("it is missing")
            verify(model)
        except IntegrityError as damage:
            return f"of the model kept at step {step}, {damage}"
    return None


def _notify(notice: Callable[[str], None] | None, problems: Sequence[str], end: str) -> None:
    if notice is not None and problems:
        notice(" ".join([*problems, end]))


def _remove(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def drop_unfinished(unfinished: Path) -> None:
    """Remove unfinished checkpoints and models, which no start would use."""
    if rank() > 0:
        return
    for folder in [*unfinished.glob("checkpoint-*"), *unfinished.glob(".step-*")]:
        if not (folder / MANIFEST).exists() or folder.name.startswith("."):
            _remove(folder)


def drop_diverged(unfinished: Path, step: int) -> Path | None:
    """Remove the checkpoints that gave a bad loss, and return the newest that gave a good one.

    The loss of step s is that of the weights after s - 1 updates.

    Args:
        unfinished: the folder of the checkpoints.
        step: the first optimiser step with a bad loss.
    """
    good: dict[int, Path] = {}
    for saved, folder in _checkpoints(unfinished).items():
        if saved < step - 1:
            good[saved] = folder
        elif rank() == 0:
            _remove(folder)
    return good[max(good)] if good else None


def _check_run(facts: dict[str, Any], folder: Path, identity: str) -> None:
    if facts.get("identity") != identity:
        raise InputError(
            f"the checkpoint belongs to the run {facts.get('identity')}, this one is {identity}",
            where=str(folder),
            hint="Delete the folder, or give the run whose checkpoint it is.",
        )


def _check_engine(facts: dict[str, Any], folder: Path, execution: ExecutionSettings) -> None:
    """Reject a checkpoint by DeepSpeed in parts that other processes cannot combine."""
    saved, now = facts.get("layout", ""), _layout(execution)
    if saved != now and ("deepspeed" in saved or "deepspeed" in now):
        raise InputError(
            f"the checkpoint was saved by {saved}, and the run would resume as {now}",
            where=str(folder),
            hint="Resume with the same execution, or delete the folder to start over.",
        )


def _layout(execution: ExecutionSettings) -> str:
    if execution.backend != "deepspeed":
        return "whole weights"
    return f"deepspeed with zero {execution.zero} in {world_size()} processes"


def complete_checkpoint(
    folder: Path,
    record: Record,
    identity: str,
    step: int,
    execution: ExecutionSettings,
) -> None:
    """Add our files to the trainer's checkpoint and write its manifest, once all have saved.

    Only then are older checkpoints removed.
    """
    pq.write_table(record.recorder.recorded(), folder / _exposures(rank()))
    if rank() == 0:
        write_log(folder, record.rows)
    barrier()
    if local_rank() == 0:
        # Each machine flushes its processes' files.
        flush(folder)
    barrier()
    if rank() == 0:
        seal(folder, {"identity": identity, "step": step, "layout": _layout(execution)})
        checkpoints = _checkpoints(folder.parent)
        for old in sorted(checkpoints)[:-MAX_CHECKPOINTS]:
            _remove(checkpoints[old])
    # No process may end, and end the others, before the checkpoint is complete.
    barrier()


def restore_record(checkpoint: Path, record: Record) -> None:
    """Load the exposures and losses of the steps before the checkpoint into a record."""
    parts = [pq.read_table(path) for path in sorted(checkpoint.glob(_exposures("*")))]
    # One process continues with the exposures of all; they are merged at the end.
    seen = pa.concat_tables(parts) if rank() == 0 else parts[0].slice(0, 0)
    record.restore(rows=read_log(checkpoint), exposures=seen)


def merge_exposures(folder: Path, recorder: Recorder) -> None:
    """Merge the exposures of all processes into those of the first.

    Args:
        folder: a folder shared by all of them.
        recorder: this process's recorder.
    """
    if world_size() == 1:
        return
    if rank() > 0:
        pq.write_table(recorder.recorded(), folder / _exposures(rank()))
    barrier()
    if rank() == 0:
        for other in range(1, world_size()):
            path = folder / _exposures(other)
            recorder.restore(pq.read_table(path))
            path.unlink()


def _exposures(of: int | str) -> str:
    return f"exposures-{of}.parquet"
