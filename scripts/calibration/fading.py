"""Simulated trainings: texts seen once at a random step, learned at the rate of that step.

A text's score rises in proportion to the learning rate of its step, and falls by a constant for
each doubling of one plus the steps since. The truth is the slope expected of very many texts:
0 without fading, for any schedule.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from analysis.intervals.ends import IntervalMethod
from analysis.intervals.influence import Floats
from analysis.intervals.numbers import Numbers
from analysis.trajectory.fading import Placed, slope_part
from inject.keyed import Stream, generator, item_key
from scripts.calibration.coverage import Coverage

STEPS = 64
KEPT = (4, 8, 16, 32, 48, 64)
LEARNT = 1.5
OWN = 0.8
"""Share of a text's variance that is the same under all models."""


class Training(NamedTuple):
    """One line of the table."""

    schedule: str
    fading: float
    members: int
    group: int

    @property
    def name(self) -> str:
        """The line's name."""
        rows = "rows alone" if self.group == 1 else f"groups of {self.group}"
        return f"{self.schedule}, {self.members} a side, {rows}, fading {self.fading:g}"


def trainings() -> Iterator[Training]:
    """Yield the lines of the table."""
    for schedule in ("constant", "warm-up", "cosine"):
        for fading in (0.0, 0.3):
            for members, group in ((40, 1), (200, 1), (200, 5)):
                yield Training(schedule, fading, members, group)


def rates(schedule: str, step: Floats) -> Floats:
    """Return the learning rate of each step, as a share of its peak."""
    if schedule == "warm-up":
        return np.minimum(step / (STEPS / 2), 1.0)
    return 0.5 + 0.5 * np.cos(np.pi * step / STEPS) if schedule == "cosine" else np.ones(len(step))


class Slopes(NamedTuple):
    """Coverage of the intervals of many studies."""

    truth: float
    coverage: Coverage
    misled: float
    """The share of studies in which only the times of different texts (all texts under the last
    model, Spearman's test at 5 %) seem to say that texts fade or that they gain."""


def slopes(training: Training, studies: int, draw: str = "") -> Slopes:
    """Return the results of many studies of one line; another `draw` has other studies."""
    from scipy.stats import spearmanr

    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration {training.name}{draw}"))
    truth = _truth(training)
    n_covered = n_intervals = misled = 0
    for _ in range(studies):
        placed, groups = _study(random, training)
        made = slope_part(placed, groups, int(groups.max()) + 1)
        last = placed[-1]
        misled += bool(spearmanr(last.doublings, last.scores).pvalue < 0.05)
        if made is None:
            continue
        (estimate,) = Numbers([{"": made[0]}], IntervalMethod.SLOPE).estimates(confidence=0.95)
        n_intervals += estimate.available
        n_covered += estimate.contains(truth)
    return Slopes(truth, Coverage(n_covered, n_intervals, studies), misled / studies)


def _study(random: np.random.Generator, training: Training) -> tuple[list[Placed], Floats]:
    members, group = training.members, training.group
    groups = np.arange(2 * members) // group
    seen = random.integers(1, STEPS + 1, size=members)
    own = _rows(random, 2 * members, groups)
    placed = []
    for step in KEPT:
        scores = np.sqrt(OWN) * own + np.sqrt(1 - OWN) * random.normal(size=2 * members)
        inside = np.flatnonzero(seen <= step)
        if not len(inside):
            continue
        doublings = np.log2(1.0 + step - seen[inside])
        learnt = LEARNT * rates(training.schedule, seen[inside].astype(float))
        scores[inside] += learnt - training.fading * doublings
        outside = np.arange(members, 2 * members)
        placed.append(
            Placed(inside, seen[inside], doublings, scores[inside], outside, scores[outside])
        )
    return placed, groups


def _rows(random: np.random.Generator, rows: int, groups: Floats) -> Floats:
    """Return standard normal rows; rows of one group share half of their variance."""
    if len(set(groups.tolist())) == rows:
        return random.normal(size=rows)
    shared = random.normal(size=int(groups.max()) + 1)[groups]
    return np.sqrt(0.5) * random.normal(size=rows) + np.sqrt(0.5) * shared


def _truth(training: Training) -> float:
    """Return the slope of the expected placement, all steps at which a text can be seen alike."""
    products = squares = 0.0
    for seen in range(1, STEPS + 1):
        steps = np.array([step for step in KEPT if step >= seen])
        times = np.log2(1.0 + steps - seen)
        learnt = LEARNT * rates(training.schedule, np.array([float(seen)]))[0]
        expected = norm.cdf((learnt - training.fading * times) / np.sqrt(2))
        apart = times - times.mean()
        products += float(apart @ expected)
        squares += float(apart @ apart)
    return round(products / squares, 9)
