"""Heartbeats: each of several training processes writes where it is, so that a hang is found.

A process writes to a file of its own, from the loop itself: a count that only grows, its optimiser
step, and what it does there. All processes of a run go through the same places, so the one with the
lowest count is the one that the others wait for; a loop that hangs writes nothing, whatever threads
live on. A thread beside the loop writes that the process runs at all, which tells a process that is
stopped from one that waits.
`train.processes.hang_detection` reads these files. Cost: one write of 64 bytes a heartbeat, six a
step (2 µs each), into a file that nobody waits for.
"""

import faulthandler
import os
import signal
import threading
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

HEARTBEATS = "heartbeats"
"""The folder of the files, below that of the checkpoints."""
ALIVE_SECONDS = 1.0
_WIDTH = 64


class Phase(StrEnum):
    """What a process does, in the order of a step."""

    SETUP = "setting up"
    DATA = "fetching data"
    COUNT = "counting the tokens of the step"
    PASS = "the forward and backward pass"
    UPDATE = "the optimiser's update"
    BETWEEN = "between two steps"
    SAVE = "saving"
    ENDED = "its end"


class Heartbeat(NamedTuple):
    """Where a process is."""

    number: int
    """Heartbeats so far; 0 where it has not begun."""
    step: int
    """The optimiser step in hand, from 1; 0 before."""
    phase: Phase
    alive_seconds: int
    """Seconds that it has run, by its own count."""
    first: int = 0
    """The first step since it was started; 0 before."""


NO_HEARTBEAT = Heartbeat(0, 0, Phase.SETUP, 0)


def read_heartbeat(folder: Path, rank: int) -> Heartbeat:
    """Return the last heartbeat of a process; `NO_HEARTBEAT` where none can be read."""
    try:
        text = _file(folder, rank).read_bytes().decode()
        number, step, phase = text[:_WIDTH].strip().split(" ", 2)
        step, _, first = step.partition("/")
        alive_seconds = int(text[_WIDTH:].strip() or 0)
        return Heartbeat(int(number), int(step), Phase(phase), alive_seconds, int(first or 0))
    except (OSError, ValueError):
        return NO_HEARTBEAT


class HeartbeatWriter:
    """Writes this process's heartbeats.

    Args:
        folder: takes the file; None writes nothing.
        rank: which process this is.
        several_nodes: whether other machines read the file.
    """

    def __init__(self, folder: Path | None, *, rank: int, several_nodes: bool = False) -> None:
        self._count = 0
        self._first = 0
        self._descriptor: int | None = None
        self._several_nodes = several_nodes
        self._ended = threading.Event()
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        path = _file(folder, rank)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.write(Phase.SETUP, 0)
        threading.Thread(target=self._write_alive, name="heartbeat", daemon=True).start()
        if hasattr(signal, "SIGUSR1"):
            # Whoever ends a silent process asks first what it was doing.
            faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)

    def write(self, phase: Phase, step: int) -> None:
        """Write that the loop has come to a place.

        Args:
            phase: what it does next.
            step: the optimiser step in hand, from 1.
        """
        if self._descriptor is None:
            return
        self._count += 1
        self._first = self._first or step
        text = f"{self._count} {step}/{self._first} {phase}".encode().ljust(_WIDTH)
        os.pwrite(self._descriptor, text, 0)

    def close(self) -> None:
        """Write that nothing more will come; the file stays."""
        self.write(Phase.ENDED, 0)
        self._ended.set()

    def _write_alive(self) -> None:
        seconds = 0
        while not self._ended.wait(ALIVE_SECONDS) and self._descriptor is not None:
            seconds += 1
            os.pwrite(self._descriptor, str(seconds).encode().ljust(_WIDTH), _WIDTH)
            if self._several_nodes:
                # They are shown nothing before it is flushed.
                os.fsync(self._descriptor)


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}"
