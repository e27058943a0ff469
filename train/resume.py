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
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from inject.errors import InputError
from inject.files import write_text
from train.log import read_log, write_log
from train.record import Record

KEPT = 2
EVERY_SECONDS = 300.0
_MARK = "spikein.json"
_NAME = re.compile(r"checkpoint-(\d+)")


class ResumePoint(NamedTuple):
    """A whole checkpoint of this run."""

    folder: Path
    step: int
    """Optimiser steps done."""


def find_resume_point(unfinished: Path | None, identity: str) -> ResumePoint | None:
    """Return the newest whole checkpoint below a folder, or None; half-written ones are removed.

    Args:
        unfinished: the folder; None where nothing is kept.
        identity: digest of everything that bears on the run's numbers.

    Raises:
        InputError: a checkpoint there belongs to another run.
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
            shutil.rmtree(folder, ignore_errors=True)
            continue
        if mark.get("identity") != identity:
            raise InputError(
                f"the checkpoint belongs to the run {mark.get('identity')}, this one is {identity}",
                where=str(folder),
                hint="Delete the folder, or give the run whose checkpoint it is.",
            )
        found.append(ResumePoint(folder, int(match.group(1))))
    return max(found, key=lambda point: point.step, default=None)


def complete(folder: Path, record: Record, identity: str, step: int) -> None:
    """Add what is ours to the trainer's checkpoint; the mark comes last."""
    pq.write_table(record.ledger.seen(), folder / "exposures.parquet")
    write_log(folder / "log.parquet", record.rows)
    write_text(folder / _MARK, json.dumps({"identity": identity, "step": step}))


def take_up(point: ResumePoint, record: Record) -> None:
    """Give a record what was seen and lost before the checkpoint."""
    record.restore(
        rows=read_log(point.folder / "log.parquet"),
        exposures=pq.read_table(point.folder / "exposures.parquet"),
    )


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
