"""Estimates of the time that a step and a run still take, from what was measured so far.

The work of a step is its operations where they are known, else its tokens, else 1. The seconds per
unit of work are measured on the finished steps of the same kind; before there are any, the step's
own estimate counts. Steps of a kind without any measurement count with the mean of the finished
steps; while more than half of the remaining steps are of such kinds, there is no estimate.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from inject.step import Step

_MAX_UNKNOWN = 0.5
_MIN_SECONDS = 1.0


class StepPace:
    """Estimates the time that a step still takes, from its progress since its first report.

    Not from its beginning: a model is loaded first, and a resumed step begins in the middle.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None

    def seconds_left(self, done: float, total: float | None) -> float | None:
        """Take a report of the progress; return the seconds left, None while there is no estimate.

        Args:
            done: units of work done.
            total: units of work in all; None where it is not known.
        """
        now = self._clock()
        if self._first is None or done < self._first[1]:
            self._first = (now, done)
        since, before = self._first
        if not total or done <= before or now - since < _MIN_SECONDS:
            return None
        return (total - done) * (now - since) / (done - before)


class Forecast:
    """Estimates the time that the steps of a run still take."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left = {step.name: step for step in steps}
        self._work: dict[str, float] = defaultdict(float)
        self._seconds: dict[str, float] = defaultdict(float)
        self._finished = 0

    def finished(self, name: str, seconds: float, *, built: bool) -> None:
        """Record the time of a step; the time of a step that another run built is not used."""
        step = self._left.pop(name, None)
        if step is None or not built:
            return
        self._finished += 1
        self._work[step.kind] += _work(step)
        self._seconds[step.kind] += seconds

    def seconds_left(self, running: Mapping[str, float] | None = None) -> float | None:
        """Return the seconds that all steps still take; None while there is no estimate.

        Args:
            running: the steps that are being built side by side, each with the seconds since its
                build began. As many are taken to run side by side to the end.
        """
        spent = running or {}
        known, unknown = 0.0, 0
        for name, step in self._left.items():
            seconds = self._step_seconds(step)
            if seconds is None:
                unknown += 1
            else:
                known += max(seconds - spent.get(name, 0.0), 0.0)
        if not self._left:
            return 0.0
        if unknown > _MAX_UNKNOWN * len(self._left):
            return None
        mean = sum(self._seconds.values()) / self._finished if self._finished else 0.0
        return (known + unknown * mean) / max(len(spent), 1)

    def _step_seconds(self, step: Step) -> float | None:
        if self._work[step.kind]:
            return _work(step) * self._seconds[step.kind] / self._work[step.kind]
        return step.cost.seconds if step.cost else None


def _work(step: Step) -> float:
    cost = step.cost
    return float((cost and (cost.flops or cost.tokens)) or 1.0)
