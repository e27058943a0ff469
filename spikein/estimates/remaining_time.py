"""How long a run still takes, by what its finished steps took.

A step's work is its operations where they are known, else its tokens, else 1. Of each kind of step
the seconds a unit of work are those of the steps finished so far, or, before there are any,
those that the step's own estimate gives. Kinds that nobody knows anything about yet count with
the mean of the finished steps; while half of what is left is of that sort, nothing is said.
"""

from collections import defaultdict
from collections.abc import Sequence

from spikein.pipeline.graph import Step

_LEAST_KNOWN = 0.5


class Forecast:
    """Foretells the time that the steps of a run still take."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left = {step.name: step for step in steps}
        self._work: dict[str, float] = defaultdict(float)
        self._seconds: dict[str, float] = defaultdict(float)
        self._finished = 0

    def finished(self, name: str, seconds: float, *, built: bool) -> None:
        """Take over what a step took; one that another run built teaches nothing."""
        step = self._left.pop(name, None)
        if step is None or not built:
            return
        self._finished += 1
        self._work[step.kind] += _work(step)
        self._seconds[step.kind] += seconds

    def seconds_left(self, *, running: str | None = None, spent: float = 0.0) -> float | None:
        """Return the seconds that all steps still take; None while nobody can know.

        Args:
            running: the step that is being built.
            spent: for how many seconds it has been.
        """
        known, guessed = 0.0, 0
        for name, step in self._left.items():
            seconds = self._of(step)
            if seconds is None:
                guessed += 1
            else:
                known += max(seconds - spent, 0.0) if name == running else seconds
        if not self._left:
            return 0.0
        if guessed > _LEAST_KNOWN * len(self._left):
            return None
        mean = sum(self._seconds.values()) / self._finished if self._finished else 0.0
        return known + guessed * mean

    def _of(self, step: Step) -> float | None:
        if self._work[step.kind]:
            return _work(step) * self._seconds[step.kind] / self._work[step.kind]
        return step.cost.seconds if step.cost else None


def _work(step: Step) -> float:
    cost = step.cost
    return float((cost and (cost.flops or cost.tokens)) or 1.0)
