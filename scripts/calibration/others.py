"""Simulated studies beyond a single AUC: pooled rows, TPR, trends, paired differences.

All intervals come from the report's own functions.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from analysis.intervals.clustered import Part, cluster
from analysis.intervals.ends import Interval, IntervalMethod, find_difference, find_interval
from analysis.intervals.influence import (
    Sample,
    Side,
    auc_sample,
    difference,
    tpr_sample,
    trend_sample,
)
from inject.keyed import Stream, generator, item_key
from scripts.calibration.simulation import SHARED

LEVELS = (1, 2, 4, 8)


class Case(NamedTuple):
    """One row of a table."""

    name: str
    truth: float
    scale: IntervalMethod | None
    """None for a difference: its study is the two AUCs'."""
    study: Callable[[np.random.Generator], dict[str, Part]]
    """Draws one study: the result of each of its datasets."""


def intervals(case: Case, studies: int, draw: str = "") -> Interval:
    """Return the intervals of many studies of one case; another `draw` has other studies."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration {case.name}{draw}"))
    studies_drawn = [case.study(random) for _ in range(studies)]
    joined = {name: _stacked([study[name] for study in studies_drawn]) for name in studies_drawn[0]}
    if case.scale is None:
        earlier, later = joined.values()
        gap = earlier._replace(sample=difference(earlier.sample, later.sample))
        clustered = [cluster([{"": each}]) for each in (gap, earlier, later)]
        return find_difference(*clustered, confidence=0.95)
    return find_interval(cluster([joined]), case.scale, confidence=0.95)


def _stacked(parts: list[Part]) -> Part:
    """Return one dataset of all studies as one sample of as many numbers."""
    sample = Sample.join([part.sample for part in parts])
    return Part(sample, np.concatenate([part.weight for part in parts]))


def pooled_cases() -> list[Case]:
    """Return the AUC over four datasets of unlike sizes and unlike AUCs."""
    return [
        Case(
            f"{scale} × (10, 20, 30, 40) a side, {groups_text(group)}, AUC {auc}",
            _pooled_truth(auc),
            IntervalMethod.AUC,
            lambda random, scale=scale, group=group, auc=auc: _pooled(random, scale, group, auc),
        )
        for scale in (1, 4)
        for group in (1, 5)
        for auc in (0.5, 0.7, 0.9)
    ]


def rate_cases() -> list[Case]:
    """Return TPRs of one dataset."""
    return [
        Case(
            f"FPR {rate:g}, {outside} non-members, {inside} members, "
            f"{groups_text(group)}, TPR {tpr}",
            tpr,
            IntervalMethod.TPR,
            lambda random, rate=rate, outside=outside, inside=inside, group=group, tpr=tpr: _rate(
                random, rate, (inside, outside), group, tpr
            ),
        )
        for rate, outside in ((0.1, 100), (0.1, 400), (0.05, 200), (0.01, 1000))
        for inside in (20, 100, 400)
        for group in (1, 4)
        for tpr in (0.3, 0.9)
    ]


def pooled_rate_cases() -> list[Case]:
    """Return TPRs of four datasets together, of which none supports the rate by itself."""
    return [
        Case(
            f"FPR {rate:g}, 4 × {outside} non-members, 4 × {inside} members, TPR {tpr}",
            tpr,
            IntervalMethod.TPR,
            lambda random, rate=rate, outside=outside, inside=inside, tpr=tpr: {
                str(d): Part(_rate_sample(random, rate, (inside, outside), 1, tpr), _ONE)
                for d in range(4)
            },
        )
        for rate, outside in ((0.1, 50), (0.05, 100))
        for inside in (25, 100)
        for tpr in (0.3, 0.7)
    ]


def trend_cases() -> list[Case]:
    """Return Somers' D of score given 1, 2, 4 or 8 copies, and of few members against many."""
    return [
        Case(
            f"{members} members, {groups_text(group)}, effect {effect}",
            trend_truth(effect),
            IntervalMethod.TREND,
            lambda random, members=members, group=group, effect=effect: _trend(
                random, members, group, effect
            ),
        )
        for members in (20, 100, 400)
        for group in (1, 5)
        for effect in (0.0, 0.3, 1.0)
    ] + [
        Case(
            f"100 members, {few} of them without a copy, the others with one, effect {effect}",
            float(2 * norm.cdf(effect / np.sqrt(2)) - 1),
            IntervalMethod.TREND,
            lambda random, few=few, effect=effect: _lopsided_trend(random, few, effect),
        )
        for few in (3, 5, 15)
        for effect in (0.0, 1.0)
    ]


def difference_cases() -> list[Case]:
    """Return differences of two detectors on the same rows, 80 % of their noise shared."""
    return [
        Case(
            f"{rows} a side, {groups_text(group)}, AUC {auc} against {other}",
            auc - other,
            None,
            lambda random, rows=rows, group=group, auc=auc, other=other: _difference(
                random, rows, group, (auc, other)
            ),
        )
        for rows in (20, 40, 100, 400)
        for group in (1, 4)
        for auc, other in ((0.7, 0.7), (0.75, 0.7), (0.9, 0.6), (0.95, 0.9), (0.98, 0.95))
    ]


def realised_rates(rate: float, outside: int, studies: int) -> tuple[float, float]:
    """Return the FPR that new non-members have at the threshold: of k / m, of (k + 1) / (m + 1)."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration FPR {rate} {outside}"))
    scores = -np.sort(-random.normal(size=(studies, outside)), axis=1)
    rates = []
    for k in (int(rate * outside + 1e-9), int(np.floor(rate * (outside + 1) - 1 + 1e-9))):
        rates.append(float(norm.sf(scores[:, k]).mean()) if k >= 0 else 0.0)
    return rates[0], rates[1]


_ONE = np.ones(1)


def groups_text(size: int) -> str:
    """Return the grouping of rows as text."""
    return "rows alone" if size == 1 else f"groups of {size}"


def rows_of_side(random: np.random.Generator, rows: int, group: int, first: int = 0) -> Side:
    """Return standard normal rows of one side, correlated within groups that count from `first`."""
    number = np.arange(rows) // group
    scores = random.normal(size=rows)
    if group > 1:
        shared = random.normal(size=number[-1] + 1)[number]
        scores = np.sqrt(1 - SHARED) * scores + np.sqrt(SHARED) * shared
    return Side(scores, number + first)


def _auc(members: Side, nonmembers: Side) -> Sample:
    everyone = np.ones((1, len(members.scores)), dtype=bool)
    return auc_sample(members, nonmembers, everyone, int(nonmembers.groups.max()) + 1)


def _both(random: np.random.Generator, rows: tuple[int, int], group: int) -> tuple[Side, Side]:
    members = rows_of_side(random, rows[0], group)
    return members, rows_of_side(random, rows[1], group, int(members.groups.max()) + 1)


_SIZES = (10, 20, 30, 40)
_OFFSETS = (-0.3, 0.0, 0.1, 0.3)


def _pooled_truth(auc: float) -> float:
    shift = norm.ppf(auc) * np.sqrt(2)
    aucs = norm.cdf((shift + np.array(_OFFSETS)) / np.sqrt(2))
    return float(np.average(aucs, weights=_SIZES))


def _pooled(random: np.random.Generator, scale: int, group: int, auc: float) -> dict[str, Part]:
    parts = {}
    for d, (size, offset) in enumerate(zip(_SIZES, _OFFSETS, strict=True)):
        members, nonmembers = _both(random, (scale * size, scale * size), group)
        moved = members._replace(scores=members.scores + norm.ppf(auc) * np.sqrt(2) + offset)
        parts[str(d)] = Part(_auc(moved, nonmembers), np.array([float(size)]))
    return parts


def _rate_sample(
    random: np.random.Generator, rate: float, rows: tuple[int, int], group: int, tpr: float
) -> Sample:
    members, nonmembers = _both(random, rows, group)
    shift = norm.isf(rate) - norm.isf(tpr)
    moved = members._replace(scores=members.scores + shift)
    everyone = np.ones((1, rows[0]), dtype=bool)
    return tpr_sample(moved, nonmembers, everyone, int(nonmembers.groups.max()) + 1, rate)


def _rate(
    random: np.random.Generator, rate: float, rows: tuple[int, int], group: int, tpr: float
) -> dict[str, Part]:
    return {"": Part(_rate_sample(random, rate, rows, group, tpr), _ONE)}


def trend_truth(effect: float) -> float:
    """Return Somers' D over all pairs of members whose copies differ."""
    logs = np.log2(1 + np.array(LEVELS))
    pairs = [
        2 * norm.cdf(effect * (logs[b] - logs[a]) / np.sqrt(2)) - 1
        for b in range(len(logs))
        for a in range(b)
    ]
    return float(np.mean(pairs))


def _trend(random: np.random.Generator, members: int, group: int, effect: float) -> dict[str, Part]:
    side = rows_of_side(random, members, group)
    # Copies are drawn row by row, as many of each number.
    copies = np.array(LEVELS)[random.permutation(members) % len(LEVELS)]
    scores = side.scores + effect * np.log2(1 + copies)
    sample, pairs = trend_sample(Side(scores, side.groups), copies, int(side.groups.max()) + 1)
    return {"": Part(sample, np.array([pairs]))}


def _lopsided_trend(random: np.random.Generator, few: int, effect: float) -> dict[str, Part]:
    side = rows_of_side(random, 100, 1)
    copies = (np.arange(100) >= few).astype(np.int64)
    moved = side._replace(scores=side.scores + effect * copies)
    sample, pairs = trend_sample(moved, copies, 100)
    return {"": Part(sample, np.array([pairs]))}


def _difference(
    random: np.random.Generator, rows: int, group: int, aucs: tuple[float, float]
) -> dict[str, Part]:
    shared = _both(random, (rows, rows), group)
    samples = []
    for auc in aucs:
        own = _both(random, (rows, rows), group)
        members, nonmembers = (
            Side(np.sqrt(0.8) * both.scores + np.sqrt(0.2) * own_part.scores, both.groups)
            for both, own_part in zip(shared, own, strict=True)
        )
        moved = members._replace(scores=members.scores + norm.ppf(auc) * np.sqrt(2))
        samples.append(_auc(moved, nonmembers))
    return {str(at): Part(sample, _ONE) for at, sample in enumerate(samples)}
