"""What each of several training processes says about where it is, so that a silent one is found.

A process writes to a file of its own, from the loop itself: a count that only grows, its optimiser
step, and what it does there. All processes of a run go through the same places, so the one with the
lowest count is the one that the others wait for; a loop that hangs writes nothing, whatever threads
live on. A thread writes beside it that the process runs at all: a process that is stopped is told
from one that waits. `train.processes.hang_detection` reads these files. Cost: one write of 64 bytes
a beat, six beats a step (2 µs each), into a file that nobody waits for.
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
PULSE_SECONDS = 1.0
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


class Beat(NamedTuple):
    """Where a process is."""

    number: int
    """Beats so far; 0 where it has not begun."""
    step: int
    """The optimiser step in hand, from 1; 0 before."""
    phase: Phase
    pulse: int
    """Seconds that it has been seen to run, by its own count."""
    first: int = 0
    """The first step since it was started; 0 before."""


NEVER = Beat(0, 0, Phase.SETUP, 0)


def read_beat(folder: Path, rank: int) -> Beat:
    """Return the last beat of a process; `NEVER` where there is none that can be read."""
    try:
        text = _file(folder, rank).read_bytes().decode()
        count, step, phase = text[:_WIDTH].strip().split(" ", 2)
        step, _, first = step.partition("/")
        pulse = int(text[_WIDTH:].strip() or 0)
        return Beat(int(count), int(step), Phase(phase), pulse, int(first or 0))
    except (OSError, ValueError):
        return NEVER


class Heart:
    """Writes this process's beats.

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
        self.beat(Phase.SETUP, 0)
        threading.Thread(target=self._pulse, name="pulse", daemon=True).start()
        if hasattr(signal, "SIGUSR1"):
            # Whoever ends a silent process asks first what it was doing.
            faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)

    def beat(self, phase: Phase, step: int) -> None:
        """Say that the loop has come to a place.

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
        """Say that nothing more will come; the file stays."""
        self.beat(Phase.ENDED, 0)
        self._ended.set()

    def _pulse(self) -> None:
        pulse = 0
        while not self._ended.wait(PULSE_SECONDS) and self._descriptor is not None:
            pulse += 1
            os.pwrite(self._descriptor, str(pulse).encode().ljust(_WIDTH), _WIDTH)
            if self._several_nodes:
                # They are shown nothing before it is flushed.
                os.fsync(self._descriptor)


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}"
