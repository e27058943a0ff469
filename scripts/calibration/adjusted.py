"""Simulated studies of a base model and a trained one on the same rows, dealt again for each seed.

A row has its own score, partly shared by both models, that training does not change. The
adjusted AUC has the same truth as the raw one; the adjustment changes the interval's width.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from analysis.intervals.clustered import Part, cluster
from analysis.intervals.ends import Interval, IntervalMethod, find_interval
from analysis.intervals.influence import Floats
from analysis.intervals.numbers import adjust, control_weights
from inject.keyed import Stream, generator, item_key
from scripts.calibration.simulation import SHARED, influence


class Pair(NamedTuple):
    """One line of the table."""

    rows: int
    group: int
    auc: float
    common: float
    """Correlation of a row's scores under the two models."""
    seeds: int = 1
    deviation: float = 0.0
    """Of the seeds' AUC, at an AUC of 0.5."""

    @property
    def name(self) -> str:
        """The line's name."""
        groups = "rows alone" if self.group == 1 else f"groups of {self.group}"
        seeds = f", {self.seeds} seeds (deviation {self.deviation:g})" if self.seeds > 1 else ""
        return f"{self.rows} a side, {groups}, correlation {self.common:g}{seeds}, AUC {self.auc}"


def pairs() -> Iterator[Pair]:
    """Yield the lines of the table."""
    for common in (0.3, 0.9):
        for auc in (0.5, 0.65, 0.9, 0.98):
            for rows, group in ((20, 1), (40, 1), (100, 1), (400, 1), (100, 4)):
                yield Pair(rows, group, auc, common)
    for seeds, deviation in ((3, 0.0), (3, 0.03), (5, 0.03)):
        for auc in (0.5, 0.8):
            yield Pair(100, 1, auc, 0.9, seeds, deviation)


class Found(NamedTuple):
    """Raw and adjusted intervals of many studies, and the truth of each."""

    raw: Interval
    adjusted: Interval
    truth: Floats


def studies_of(pair: Pair, studies: int, draw: str = "") -> Found:
    """Return the intervals of many studies of one line; another `draw` has other studies."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration adjusted {tuple(pair)}{draw}"))
    half = pair.rows // pair.group
    base = _rows(random, studies, 2 * half, pair.group)
    spread = pair.deviation / (norm.pdf(0) / np.sqrt(2))
    shift = norm.ppf(pair.auc) * np.sqrt(2 + spread**2)
    trained, untrained = [], []
    truth = np.full(studies, pair.auc)
    for _ in range(pair.seeds):
        order = np.argsort(random.random((studies, 2 * half)), axis=1)
        before = np.take_along_axis(base, order[:, :, None], axis=1)
        new = _rows(random, studies, 2 * half, pair.group)
        after = pair.common * before + np.sqrt(1 - pair.common**2) * new
        moved = shift + spread * random.normal(size=studies)
        if pair.seeds == 1:
            truth = norm.cdf(moved / np.sqrt(2))
        for parts, scores, up in ((trained, after, moved), (untrained, before, np.zeros(studies))):
            members = scores[:, :half].reshape(studies, -1) + up[:, None]
            others = scores[:, half:].reshape(studies, -1)
            sample = influence(members, others, pair.group, order)
            parts.append({"": Part(sample, np.ones(studies))})
    better = adjust(trained, untrained, control_weights(trained, untrained), centre=0.5)
    raw, adjusted = (
        find_interval(cluster(each), IntervalMethod.AUC, confidence=0.95)
        for each in (trained, better)
    )
    return Found(raw, adjusted, truth)


def _rows(random: np.random.Generator, studies: int, groups: int, size: int) -> Floats:
    """Return standard normal rows, [studies, groups, size], correlated within groups."""
    rows = random.normal(size=(studies, groups, size))
    if size == 1:
        return rows
    shared = random.normal(size=(studies, groups, 1))
    return np.sqrt(1 - SHARED) * rows + np.sqrt(SHARED) * shared
