"""Studies with a known truth: rows of one pool, dealt to unequal sides anew for each seed.

All arms of a seed have the same sides. Half of a row's variance is its own under every seed and
arm. A seed shifts the members of all its arms, and each of its arms by itself.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

GRID = 0.5
"""Scores are rounded to multiples of it, so many are tied."""


class Study(NamedTuple):
    """AUCs and their rows' variances, [seeds, arms]."""

    auc: np.ndarray
    variance: np.ndarray


class Design(NamedTuple):
    """What is simulated."""

    shifts: tuple[float, ...]
    """Of the members of each arm, in standard deviations of scores."""
    seeds: int = 8
    members: int = 40
    nonmembers: int = 120
    shared: float = 0.05
    """Standard deviation over seeds of the shift that all arms share."""
    own: float = 0.05
    """The same of each arm's own shift."""

    @property
    def truth(self) -> np.ndarray:
        """The mean AUC of each arm over all seeds; ties count half (Sheppard's correction)."""
        variance = 2 + self.shared**2 + self.own**2 + GRID**2 / 6
        return ndtr(np.array(self.shifts) / np.sqrt(variance))


def draw_study(design: Design, random: np.random.Generator) -> Study:
    """Return the AUCs of one study, with DeLong's variances."""
    size = design.members + design.nonmembers
    shape = design.seeds, len(design.shifts)
    rows = random.normal(size=size)
    dealt = np.argsort(random.random((design.seeds, size)), axis=1)
    shift = (
        np.array(design.shifts)
        + design.shared * random.normal(size=(design.seeds, 1))
        + design.own * random.normal(size=shape)
    )
    scores = (rows[dealt][:, None] + random.normal(size=(*shape, size))) / np.sqrt(2)
    scores[:, :, : design.members] += shift[:, :, None]
    scores = np.round(scores / GRID)
    inside, outside = np.split(scores, [design.members], axis=2)
    gaps = inside[:, :, :, None] - outside[:, :, None]
    wins = (gaps > 0) + 0.5 * (gaps == 0)
    placed = [wins.mean(axis=axis).var(axis=2, ddof=1) for axis in (3, 2)]
    return Study(wins.mean(axis=(2, 3)), placed[0] / design.members + placed[1] / design.nonmembers)
