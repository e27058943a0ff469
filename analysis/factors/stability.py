"""Whether seeds agree on single texts: decisions of one arm's models, beyond what chance gives.

In each seed a text is called a member where it scores above the threshold that at most one tenth of
the non-members of its dataset reach, (k + 1) / (m + 1) <= 0.1. Of members of two seeds the
agreement is the share with one decision; chance is what the two shares of "member" alone would
give; kappa (Cohen 1960) is the part of the way from chance to certainty. The interval leaves out a
group of rows at a time (a jackknife), over all pairs of seeds; it speaks of these models and their
thresholds.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from analysis.arm import Cohort
from analysis.factors.study import SeedRows, Study, StudyArm
from analysis.intervals.influence import Counts, Mask, allowed_false_positives
from analysis.metrics import Floats

RATE = 0.1
"""False-positive rate of the decisions."""
LEAST_GROUPS = 30
"""Groups that two seeds share, at least: with 25 an interval held the truth in 88 %."""


class Stability(NamedTuple):
    """One detector in one arm, all datasets together."""

    cohort: Cohort
    detector: str
    agreement: float
    chance: float
    kappa: float
    low: float
    """Of kappa."""
    high: float
    texts: int
    """Members of two seeds, summed over pairs."""
    seeds: int
    reason: str
    """Why there is no number; empty where there is one."""


def arm_stability(arm: StudyArm, study: Study, *, confidence: float) -> Iterator[Stability]:
    """Yield every detector's agreement over the seeds of an arm; nothing with one seed.

    Args:
        arm: which.
        study: all arms.
        confidence: coverage asked for.
    """
    if len(arm.seeds) < 2:
        return
    for detector in study.detectors:
        pairs = [_pair(one, other, detector) for one, other in combinations(arm.seeds, 2)]
        found = kappa_interval(pairs, confidence=confidence)
        yield Stability(arm.cohort, detector, *found[:5], found[5], len(arm.seeds), found[6])


class Pair(NamedTuple):
    """The decisions of two seeds on the members of both."""

    one: Mask
    other: Mask
    group: Counts


def kappa_interval(
    pairs: list[Pair], *, confidence: float
) -> tuple[float, float, float, float, float, int, str]:
    """Return agreement, chance, kappa with its ends, the texts, and why there is no number.

    Args:
        pairs: of seeds.
        confidence: coverage asked for.
    """
    from scipy.stats import t

    nothing = (float("nan"),) * 5
    groups = np.unique(np.concatenate([pair.group for pair in pairs]))
    texts = sum(len(pair.group) for pair in pairs)
    if len(groups) < LEAST_GROUPS:
        return *nothing, texts, f"{len(groups)} groups are members of two seeds"
    counts = _counts(pairs, groups)
    agreement, chance = _agreement(counts.sum(axis=0))
    if not chance < 1:
        return *nothing, texts, "all decisions are alike"
    kappa = (agreement - chance) / (1 - chance)
    total = counts.sum(axis=0)
    without = np.array([_kappa(total - counts[g]) for g in range(len(groups))])
    if not np.isfinite(without).all():
        return *nothing, texts, "one group decides it"
    n = len(groups)
    error = float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))
    half = float(t.ppf((1 + confidence) / 2, n - 1)) * error
    return agreement, chance, kappa, max(kappa - half, -1.0), min(kappa + half, 1.0), texts, ""


def _counts(pairs: list[Pair], groups: Counts) -> Floats:
    """Return how many texts of each group have each pair of decisions, [groups, pairs, 2, 2]."""
    found = np.zeros((len(groups), len(pairs), 2, 2))
    for p, pair in enumerate(pairs):
        at = np.searchsorted(groups, pair.group)
        cell = 4 * at + 2 * pair.one + pair.other
        counted = np.bincount(cell, minlength=4 * len(groups))
        found[:, p] = counted.reshape(len(groups), 2, 2)
    return found


def _agreement(total: Floats) -> tuple[float, float]:
    """Return agreement and chance over all pairs, [pairs, 2, 2] each weighted by its texts."""
    texts = total.sum(axis=(1, 2))
    there = total[texts > 0]
    weight = texts[texts > 0] / texts.sum()
    shares = there / texts[texts > 0, None, None]
    equal = shares[:, 0, 0] + shares[:, 1, 1]
    rows, columns = shares.sum(axis=2), shares.sum(axis=1)
    return float(weight @ equal), float(weight @ (rows * columns).sum(axis=1))


def _kappa(total: Floats) -> float:
    agreement, chance = _agreement(total)
    return (agreement - chance) / (1 - chance) if chance < 1 else float("nan")


def _pair(one: SeedRows, other: SeedRows, detector: str) -> Pair:
    first, second = _decisions(one, detector), _decisions(other, detector)
    both = [example for example in first if example in second]
    return Pair(
        np.array([first[example][0] for example in both], dtype=bool),
        np.array([second[example][0] for example in both], dtype=bool),
        np.array([first[example][1] for example in both], dtype=np.int64),
    )


def _decisions(rows: SeedRows, detector: str) -> dict[int, tuple[bool, int]]:
    """Return the decision on each member with a copy, and its group, by example."""
    scores, held = rows.scores[detector], rows.held(detector)
    found = {}
    for dataset in np.unique(rows.dataset).tolist():
        here = held & (rows.dataset == dataset)
        others = -np.sort(-scores[here & ~rows.member])
        allowed = allowed_false_positives(RATE, len(others))
        if allowed < 0:
            continue
        # Above the first non-member that is one too many.
        threshold = others[allowed]
        for row in np.flatnonzero(here & rows.member & (rows.copies > 0)).tolist():
            found[int(rows.example[row])] = (bool(scores[row] > threshold), int(rows.group[row]))
    return found
