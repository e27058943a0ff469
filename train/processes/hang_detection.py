"""Finding the training process that hangs: who is waited for, since when, and for how long at most.

Several processes wait for each other many times a step. When one hangs all are silent soon, and
those that wait are healthy: the one to blame is the one whose process does not run, or else the one
that has come least far. How long it may be silent follows the run's own steps. Nothing here trusts
the clock or the file dates of another machine; times are those at which a change was seen here.

A single process that hangs cannot be seen from within, and is not.
"""

import os
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from train.processes.heartbeat import NEVER, Beat, Phase, read_beat

WATCHED = "SPIKEIN_WATCHED"
"""Set in the environment of processes whose silence is watched by the one that started them."""
PARENT = "SPIKEIN_PARENT"
"""Set to the id of the process that started them."""
LEAST_SECONDS = 120.0
"""A file system or a network that stalls comes back within this."""
SETUP_SECONDS = 1800.0
"""Importing, loading weights, the first meeting of all processes."""
FIRST_STEP_SECONDS = 900.0
"""Compiling, and the first allocations."""
SAVE_SECONDS = 900.0
"""Gathering and writing a model."""
COLLECTIVE_SECONDS = 24 * 3600.0
"""After which torch gives up a wait by itself, and blames whoever waits: never first."""
POLL_SECONDS = 1.0
_PULSE_SILENCE = 10.0
_STEPS = 64


@dataclass(frozen=True, kw_only=True)
class Silence:
    """Processes that have been silent for too long."""

    ranks: tuple[int, ...]
    """Those that hang; empty where all came to the same place and none can be told from another."""
    text: str
    """What to say."""


@dataclass(kw_only=True)
class _Seen:
    """What was last seen of one process, and when."""

    beat: Beat
    since: float
    pulse_since: float

    @property
    def ended(self) -> bool:
        """Whether it said that nothing more will come."""
        return self.beat.phase is Phase.ENDED


class Watch:
    """Reads the heartbeats of a run again and again, and says when one has stopped.

    Args:
        folder: of the heartbeats.
        processes: how many there are.
        silent_after: seconds that a process may be silent within a step; None follows the steps.
        clock: seconds, never set back.
    """

    def __init__(
        self,
        folder: Path,
        processes: int,
        *,
        silent_after: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._silent_after = silent_after
        self._clock = clock
        self._looked = clock()
        self._seen = [
            _Seen(beat=NEVER, since=self._looked, pulse_since=self._looked)
            for _ in range(processes)
        ]
        self._first_step: int | None = None
        self._stepped: tuple[int, float] | None = None
        self._steps: deque[float] = deque(maxlen=_STEPS)
        self._longest_save = 0.0

    def check(self) -> Silence | None:
        """Look at all processes; return who hangs, or None."""
        now = self._clock()
        self._pardon(now)
        for rank, seen in enumerate(self._seen):
            self._look(seen, read_beat(self._folder, rank), now)
        self._measure(now)
        late = self._late()
        if not late:
            return None
        # Those that are further on wait for these, and have every right to.
        silent = min(now - self._seen[rank].since for rank in late)
        limit = self._limit(self._seen[late[0]].beat)
        return self._silence(now, silent, limit) if silent > limit else None

    def _late(self) -> list[int]:
        """Return the processes that have come least far, of those that have not ended."""
        alive = [rank for rank, seen in enumerate(self._seen) if not seen.ended]
        last = min((self._seen[rank].beat.number for rank in alive), default=0)
        return [rank for rank in alive if self._seen[rank].beat.number == last]

    def _pardon(self, now: float) -> None:
        """Count no time in which this process itself did not run (a suspended machine)."""
        missed = now - self._looked
        self._looked = now
        if missed > 10 * POLL_SECONDS:
            for seen in self._seen:
                seen.since += missed
                seen.pulse_since += missed

    def _look(self, seen: _Seen, beat: Beat, now: float) -> None:
        if beat.pulse != seen.beat.pulse or beat.number != seen.beat.number:
            seen.pulse_since = now
        if beat.number != seen.beat.number:
            if seen.beat.phase is Phase.SAVE:
                self._longest_save = max(self._longest_save, now - seen.since)
            seen.since = now
        seen.beat = beat

    def _measure(self, now: float) -> None:
        """Take the time of the steps that all have come to."""
        step = min((seen.beat.step for seen in self._seen if not seen.ended), default=0)
        if step == 0:
            return
        if self._stepped is None:
            self._first_step = max(seen.beat.first for seen in self._seen) or step
            if step > self._first_step:
                # Steps so quick that some were made between two looks.
                self._steps.append(POLL_SECONDS)
            self._stepped = (step, now)
        before, since = self._stepped
        if step > before:
            self._steps.append((now - since) / (step - before))
            self._stepped = (step, now)

    def _limit(self, beat: Beat) -> float:
        asked = self._silent_after or 0.0
        if beat.step == 0 or self._first_step is None:
            return max(SETUP_SECONDS, asked)
        if beat.phase is Phase.SAVE:
            return max(SAVE_SECONDS, 20 * self._longest_save, asked)
        if beat.step <= self._first_step or not self._steps:
            return max(FIRST_STEP_SECONDS, asked)
        return asked or step_limit(statistics.median(self._steps))

    def _silence(self, now: float, silent: float, limit: float) -> Silence:
        alive = [rank for rank, seen in enumerate(self._seen) if not seen.ended]
        ranks = [
            rank
            for rank in alive
            if self._seen[rank].beat.number > 0
            and now - self._seen[rank].pulse_since > _PULSE_SILENCE
        ]
        stopped = 0 < len(ranks) < len(alive)
        if not stopped:
            ranks = self._late()
        number = len(self._seen)
        allowed = f"{silent:.0f} s, and {limit:.0f} s are allowed here{self._why(limit)}"
        if len(ranks) == number > 1:
            where = _place(self._seen[0].beat)
            return Silence(
                ranks=(),
                text=f"all {number} training processes have waited for each other for {allowed}: "
                f"each is at {where}. None can be told from the others; look at the network "
                "between them, and at what they last said",
            )
        what = "does not run (stopped, or its machine is gone)" if stopped else "hangs"
        waiting = [rank for rank in alive if rank not in ranks]
        return Silence(
            ranks=tuple(ranks),
            text=f"training process {_listed(ranks)} of {number} {what}: no sign of life for "
            f"{allowed}. It is at {_place(self._seen[ranks[0]].beat)}"
            + (
                f"; process {_listed(waiting)} waits for it at "
                f"{_place(self._seen[waiting[0]].beat)}"
                if waiting
                else ""
            ),
        )

    def _why(self, limit: float) -> str:
        if limit == self._silent_after:
            return " by execution.silent_after"
        if self._steps and limit == step_limit(statistics.median(self._steps)):
            return f" where a step takes {statistics.median(self._steps):.2g} s"
        return ""


def step_limit(median: float) -> float:
    """Return how long a process may be silent within a step, from the median step's seconds.

    Twenty steps, at least two minutes; of steps longer than 40 s fewer.
    """
    return max(LEAST_SECONDS, min(20 * median, 5 * median + 600))


def watch_from_within(folder: Path, processes: int, silent_after: float | None) -> None:
    """Watch all processes from a thread of this one, and end it when one hangs.

    For processes that `torchrun` started: its agents then end the others.
    """
    if os.environ.get(WATCHED):
        return
    watch = Watch(folder, processes, silent_after=silent_after)

    def look() -> None:
        while (found := watch.check()) is None:
            time.sleep(POLL_SECONDS)
        print(f"{found.text}. {ADVICE}", file=sys.stderr, flush=True)
        os._exit(1)

    threading.Thread(target=look, name="silence watch", daemon=True).start()


ADVICE = (
    "Checkpoints are kept: run again to go on. Where the wait was sound, give a larger "
    "execution.silent_after."
)


def _place(beat: Beat) -> str:
    return f"step {beat.step}, {beat.phase}" if beat.step else str(beat.phase)


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks)
