"""Taking a killed run up again: what is kept beside the trainer's own checkpoint, and for whom.

A checkpoint is the trainer's (weights in safetensors, optimiser, schedule, random state) and ours:
the exposures and the log so far, and `spikein.json`, written last. One without it is half-written
and never used. It names the run that it belongs to, by the digest of everything that bears on the
run's numbers; a checkpoint of another run is refused. Two are kept.
"""

import json
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from inject.errors import InputError
from inject.files import write_text
from train.checkpoints import checkpoint_folder
from train.execution import ExecutionSettings
from train.log import read_log, write_log
from train.processes import rank, wait_for_all, world_size
from train.record import Ledger, Record

KEPT = 2
EVERY_SECONDS = 300.0
_MARK = "spikein.json"
_NAME = re.compile(r"checkpoint-(\d+)")


class ResumePoint(NamedTuple):
    """A whole checkpoint of this run."""

    folder: Path
    step: int
    """Optimiser steps done."""


def find_resume_point(
    unfinished: Path | None,
    identity: str,
    execution: ExecutionSettings | None = None,
    kept: Sequence[int] = (),
) -> ResumePoint | None:
    """Return the newest whole checkpoint below a folder, or None; half-written ones are removed.

    Args:
        unfinished: the folder; None where nothing is kept.
        identity: digest of everything that bears on the run's numbers.
        execution: how the run will go on; None for this process alone.
        kept: steps whose models are kept; a checkpoint counts only with those before it.

    Raises:
        InputError: a checkpoint there belongs to another run, or was saved by DeepSpeed in another
            number of processes or another engine, which cannot read its parts.
    """
    if unfinished is None or not unfinished.is_dir():
        return None
    found = []
    for folder in unfinished.glob("checkpoint-*"):
        match = _NAME.fullmatch(folder.name)
        if match is None:
            continue
        try:
            mark = json.loads((folder / _MARK).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            if rank() == 0:
                shutil.rmtree(folder, ignore_errors=True)
            continue
        if mark.get("identity") != identity:
            raise InputError(
                f"the checkpoint belongs to the run {mark.get('identity')}, this one is {identity}",
                where=str(folder),
                hint="Delete the folder, or give the run whose checkpoint it is.",
            )
        _check_engine(mark, folder, execution or ExecutionSettings())
        step = int(match.group(1))
        past = [one for one in kept if one <= step]
        if all((unfinished / checkpoint_folder(one)).is_dir() for one in past):
            found.append(ResumePoint(folder, step))
    return max(found, key=lambda point: point.step, default=None)


def drop_diverged(unfinished: Path, step: int) -> Path | None:
    """Remove the checkpoints that gave a bad loss, and return the newest that gave a good one.

    The loss of step s is that of the weights after s - 1 updates.

    Args:
        unfinished: the folder of the checkpoints.
        step: the first optimiser step with a bad loss.
    """
    good: dict[int, Path] = {}
    for folder in unfinished.glob("checkpoint-*"):
        match = _NAME.fullmatch(folder.name)
        if match is None:
            continue
        if int(match.group(1)) < step - 1:
            good[int(match.group(1))] = folder
        elif rank() == 0:
            shutil.rmtree(folder, ignore_errors=True)
    return good[max(good)] if good else None


def _check_engine(mark: dict[str, Any], folder: Path, execution: ExecutionSettings) -> None:
    """Refuse what DeepSpeed saved in parts that other processes cannot put together."""
    saved, now = mark.get("layout", ""), _layout(execution)
    if saved != now and ("deepspeed" in saved or "deepspeed" in now):
        raise InputError(
            f"the checkpoint was saved by {saved}, and the run would go on as {now}",
            where=str(folder),
            hint="Go on with the same execution, or delete the folder to begin anew.",
        )


def _layout(execution: ExecutionSettings) -> str:
    if execution.engine != "deepspeed":
        return "whole weights"
    return f"deepspeed with zero {execution.zero} in {world_size()} processes"


def complete(
    folder: Path,
    record: Record,
    identity: str,
    step: int,
    execution: ExecutionSettings,
) -> None:
    """Add what is ours to the trainer's checkpoint; the mark comes last, once all have saved."""
    pq.write_table(record.ledger.seen(), folder / _exposures(rank()))
    wait_for_all()
    if rank() == 0:
        write_log(folder / "log.parquet", record.rows)
        mark = {"identity": identity, "step": step, "layout": _layout(execution)}
        write_text(folder / _MARK, json.dumps(mark))


def take_up(point: ResumePoint, record: Record) -> None:
    """Give a record what was seen and lost before the checkpoint."""
    parts = [pq.read_table(path) for path in sorted(point.folder.glob(_exposures("*")))]
    # One process goes on with what all had seen; the ledgers are merged at the end.
    seen = pa.concat_tables(parts) if rank() == 0 else parts[0].slice(0, 0)
    record.restore(rows=read_log(point.folder / "log.parquet"), exposures=seen)


def merge_exposures(folder: Path, ledger: Ledger) -> None:
    """Bring what all processes saw into the ledger of the first.

    Args:
        folder: one that all of them share.
        ledger: this process's.
    """
    if world_size() == 1:
        return
    if rank() > 0:
        pq.write_table(ledger.seen(), folder / _exposures(rank()))
    wait_for_all()
    if rank() == 0:
        for other in range(1, world_size()):
            path = folder / _exposures(other)
            ledger.restore(pq.read_table(path))
            path.unlink()


def _exposures(of: int | str) -> str:
    return f"exposures-{of}.parquet"


class Timer:
    """Says when the next checkpoint is due: after so many steps, or so many seconds."""

    def __init__(self, every: int | None) -> None:
        self._every = every
        self._last = time.monotonic()

    def due(self, step: int) -> bool:
        """Return whether a checkpoint is due after this step."""
        if self._every is not None:
            return step % self._every == 0
        return time.monotonic() - self._last >= EVERY_SECONDS

    def saved(self) -> None:
        """Start to count anew."""
        self._last = time.monotonic()
