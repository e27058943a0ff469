"""Detection of the training process that hangs, by heartbeats.

Each of several processes writes heartbeats to a separate file, from the loop itself: an increasing
count, its optimiser step, and its phase. A loop that hangs writes nothing, even if threads are
alive; another thread records that the process runs at all, which distinguishes a stopped process
from a waiting one. Cost: one write of 64 bytes per heartbeat, six per step (2 µs each).

Several processes wait for each other many times per step. If one hangs, all heartbeats stop, and
the waiting processes are healthy. The hanging process is the one that does not run, or else the one
that has progressed least. The allowed silence adapts to the run's own steps. Clocks and file dates
of other machines are not used; times are those at which this process sees a change.

A single process cannot detect its own hang.
"""

import faulthandler
import os
import signal
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

HEARTBEATS = "heartbeats"
"""The folder of the files, inside that of the checkpoints."""
ALIVE_SECONDS = 1.0
_WIDTH = 64


class Phase(StrEnum):
    """Phases of a process, in the order of a step."""

    SETUP = "setting up"
    DATA = "fetching data"
    COUNT = "counting the tokens of the step"
    PASS = "the forward and backward pass"
    UPDATE = "the optimiser's update"
    BETWEEN = "between two steps"
    SAVE = "saving"
    ENDED = "its end"


class Heartbeat(NamedTuple):
    """Progress of a process."""

    number: int
    """Heartbeats so far; 0 if it has not started."""
    step: int
    """The current optimiser step, from 1; 0 before."""
    phase: Phase
    alive_seconds: int
    """Seconds that it has run, by its own count."""
    first: int = 0
    """The first step since its start; 0 before."""


NO_HEARTBEAT = Heartbeat(0, 0, Phase.SETUP, 0)


def read_heartbeat(folder: Path, rank: int) -> Heartbeat:
    """Return the last heartbeat of a process; `NO_HEARTBEAT` if none can be read."""
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
        folder: folder of the file; None writes nothing.
        rank: rank of this process.
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
            # Before a silent process is ended, it writes its stack on request.
            faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)

    def write(self, phase: Phase, step: int) -> None:
        """Record the loop's phase.

        Args:
            phase: the next phase.
            step: the current optimiser step, from 1.
        """
        if self._descriptor is None:
            return
        self._count += 1
        self._first = self._first or step
        text = f"{self._count} {step}/{self._first} {phase}".encode().ljust(_WIDTH)
        os.pwrite(self._descriptor, text, 0)

    def close(self) -> None:
        """Record the end of the heartbeats; the file remains."""
        self.write(Phase.ENDED, 0)
        self._ended.set()

    def _write_alive(self) -> None:
        seconds = 0
        while not self._ended.wait(ALIVE_SECONDS) and self._descriptor is not None:
            seconds += 1
            os.pwrite(self._descriptor, str(seconds).encode().ljust(_WIDTH), _WIDTH)
            if self._several_nodes:
                # Other machines see nothing before it is flushed.
                os.fsync(self._descriptor)


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}"


WATCHED_BY_PARENT = "SPIKEIN_WATCHED"
"""Environment variable of processes whose heartbeats their parent reads."""
PARENT = "SPIKEIN_PARENT"
"""Environment variable with the parent's process id."""
MIN_SECONDS = 120.0
"""Seconds within which a stalled file system or network recovers."""
SETUP_SECONDS = 1800.0
"""Seconds for importing, loading weights, and the first synchronisation of all processes."""
FIRST_STEP_SECONDS = 900.0
"""Seconds for compiling and the first allocations."""
SAVE_SECONDS = 900.0
"""Seconds for gathering and writing a model."""
COLLECTIVE_SECONDS = 24 * 3600.0
"""Seconds after which torch itself ends a wait and names a waiting process: later than this
module."""
POLL_SECONDS = 1.0
_STOPPED_SECONDS = 10.0
_STEPS = 64


@dataclass(kw_only=True)
class _ProcessState:
    """The last heartbeat of one process, and when it changed."""

    heartbeat: Heartbeat
    since: float
    alive_since: float

    @property
    def ended(self) -> bool:
        """Whether it recorded the end of its heartbeats."""
        return self.heartbeat.phase is Phase.ENDED


class HangDetector:
    """Repeatedly reads the heartbeats of a run, and finds the process that hangs.

    Args:
        folder: folder of the heartbeats.
        processes: number of processes.
        hang_timeout: allowed seconds without a heartbeat within a step; None adapts to the steps.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        folder: Path,
        processes: int,
        *,
        hang_timeout: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._hang_timeout = hang_timeout
        self._clock = clock
        self._checked_at = clock()
        self._states = [
            _ProcessState(
                heartbeat=NO_HEARTBEAT, since=self._checked_at, alive_since=self._checked_at
            )
            for _ in range(processes)
        ]
        self._first_step: int | None = None
        self._last_step: tuple[int, float] | None = None
        self._steps: deque[float] = deque(maxlen=_STEPS)
        self._longest_save = 0.0

    def check(self) -> tuple[tuple[int, ...], str] | None:
        """Read all heartbeats; return the hanging processes and a message, or None.

        No process is named if all reached the same point and cannot be distinguished.
        """
        now = self._clock()
        self._skip_suspension(now)
        for rank, state in enumerate(self._states):
            self._update(state, read_heartbeat(self._folder, rank), now)
        self._time_steps(now)
        late = self._last_ranks()
        if not late:
            return None
        # Those that are further ahead wait for these.
        silent = min(now - self._states[rank].since for rank in late)
        limit = self._allowed_seconds(self._states[late[0]].heartbeat)
        return self._describe_hang(now, silent, limit) if silent > limit else None

    def _last_ranks(self) -> list[int]:
        """Return the processes with the least progress, of those that have not ended."""
        alive = [rank for rank, state in enumerate(self._states) if not state.ended]
        last = min((self._states[rank].heartbeat.number for rank in alive), default=0)
        return [rank for rank in alive if self._states[rank].heartbeat.number == last]

    def _skip_suspension(self, now: float) -> None:
        """Exclude time in which this process itself did not run (a suspended machine)."""
        missed = now - self._checked_at
        self._checked_at = now
        if missed > 10 * POLL_SECONDS:
            for state in self._states:
                state.since += missed
                state.alive_since += missed

    def _update(self, state: _ProcessState, heartbeat: Heartbeat, now: float) -> None:
        last = state.heartbeat
        if heartbeat.alive_seconds != last.alive_seconds or heartbeat.number != last.number:
            state.alive_since = now
        if heartbeat.number != last.number:
            if last.phase is Phase.SAVE:
                self._longest_save = max(self._longest_save, now - state.since)
            state.since = now
        state.heartbeat = heartbeat

    def _time_steps(self, now: float) -> None:
        """Measure the duration of the steps that all processes have reached."""
        step = min((state.heartbeat.step for state in self._states if not state.ended), default=0)
        if step == 0:
            return
        if self._last_step is None:
            self._first_step = max(state.heartbeat.first for state in self._states) or step
            if step > self._first_step:
                # Several steps may be complete between two checks.
                self._steps.append(POLL_SECONDS)
            self._last_step = (step, now)
        before, since = self._last_step
        if step > before:
            self._steps.append((now - since) / (step - before))
            self._last_step = (step, now)

    def _allowed_seconds(self, heartbeat: Heartbeat) -> float:
        limit = self._hang_timeout or 0.0
        if heartbeat.step == 0 or self._first_step is None:
            return max(SETUP_SECONDS, limit)
        if heartbeat.phase is Phase.SAVE:
            return max(SAVE_SECONDS, 20 * self._longest_save, limit)
        if heartbeat.step <= self._first_step or not self._steps:
            return max(FIRST_STEP_SECONDS, limit)
        return limit or allowed_silence(statistics.median(self._steps))

    def _describe_hang(
        self, now: float, silent: float, limit: float
    ) -> tuple[tuple[int, ...], str]:
        alive = [rank for rank, state in enumerate(self._states) if not state.ended]
        ranks = [
            rank
            for rank in alive
            if self._states[rank].heartbeat.number > 0
            and now - self._states[rank].alive_since > _STOPPED_SECONDS
        ]
        stopped = 0 < len(ranks) < len(alive)
        if not stopped:
            ranks = self._last_ranks()
        number = len(self._states)
        allowed = f"{silent:.0f} s, and {limit:.0f} s are allowed here"
        if len(ranks) == number > 1:
            position = _place(self._states[0].heartbeat)
            return (), (
                f"all {number} training processes have waited for each other for {allowed}: "
                f"each is at {position}. They cannot be distinguished; look at the network "
                "between them, and at their last output"
            )
        condition = "does not run (stopped, or its machine is gone)" if stopped else "hangs"
        text = (
            f"training process {', '.join(map(str, ranks))} of {number} {condition}: no sign of "
            f"life for {allowed}. It is at {_place(self._states[ranks[0]].heartbeat)}"
        )
        if waiting := [rank for rank in alive if rank not in ranks]:
            place = _place(self._states[waiting[0]].heartbeat)
            text += f"; process {', '.join(map(str, waiting))} waits for it at {place}"
        return tuple(ranks), text


def allowed_silence(median: float) -> float:
    """Return the allowed silence within a step, from the median step's seconds.

    Twenty steps, at least two minutes; fewer steps if one takes more than 40 s.
    """
    return max(MIN_SECONDS, min(20 * median, 5 * median + 600))


def start_hang_detection(folder: Path, processes: int, hang_timeout: float | None) -> None:
    """Watch all processes from a thread of this one, and end it when one hangs.

    For processes that `torchrun` started: its agents then end the others.
    """
    if os.environ.get(WATCHED_BY_PARENT):
        return
    watch = HangDetector(folder, processes, hang_timeout=hang_timeout)

    def look() -> None:
        while (hang := watch.check()) is None:
            time.sleep(POLL_SECONDS)
        print(f"{hang[1]}. {ADVICE}", file=sys.stderr, flush=True)
        os._exit(1)

    threading.Thread(target=look, name="silence watch", daemon=True).start()


ADVICE = (
    "Checkpoints are kept: run again to resume. If the wait was legitimate, set a larger "
    "training_runtime.hang_timeout."
)


def _place(heartbeat: Heartbeat) -> str:
    return f"step {heartbeat.step}, {heartbeat.phase}" if heartbeat.step else str(heartbeat.phase)
