"""How many examples and seeds a study needs to see an AUC, or a difference of two.

The variance is that of the report's intervals, with what is not known yet assumed:

    V = V_1 · D · (shared + (1 - shared) / S) + deviation² / S

V_1 is that of one AUC of independent rows with normal scores; D is its factor of increase
with groups; *shared* is the part of it that is the same in every seed, none if rows are assigned to
the sides again; the deviation is that of the seeds' true AUCs, and enters from three seeds on, as
in the report: fewer seeds describe only these models. A difference of two arms has
V_a + V_b - 2 · correlation · √(V_a V_b), part by part. Power is that of the report's own rule,
on the logit scale for an AUC and as it stands for a difference. A study estimates what its seeds
differ by from a few of them, and its interval varies with that: the power is averaged over it.

`spikein plan --power --from` assumes the variances that a finished study estimated.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from analysis.factors.study import Study
from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.influence import Floats
from analysis.intervals.joint import BySeed
from analysis.intervals.numbers import Numbers, join_numbers
from analysis.tables import POOLED

VARIANCE = "variance"
WANTED = 0.8
"""The required power."""
_NODES = 200
"""Quantiles of what the seeds differ by that the power is averaged over."""
_MOST = 10_000_000
"""Members beyond which none are counted: what this many do not show, no number does."""


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Quantities that are unknown before a study."""

    auc: float = 0.6
    """Of the arm that is looked at; of two arms, the one that the difference is added to."""
    seed_deviation: float = 0.03
    """Of the true AUC over seeds."""
    correlation: float = 0.5
    """Of what the rows do to two arms of one seed."""
    seed_correlation: float = 0.5
    """Of what a seed does to two arms."""
    shared: float = 0.0
    """Part of the variance of one seed's AUC that all seeds share."""
    design_effect: float = 1.0
    """Factor by which that variance exceeds the one of independent rows."""
    nonmembers_per_member: float = 1.0
    confidence: float = 0.95


class _Parts(NamedTuple):
    """The variance of one number: of the rows in one seed, over all seeds, and of the seeds."""

    items: float
    """Of the rows, over all seeds."""
    seeds: float
    """Of the seeds' true values, over their number."""
    own: float
    """The rows' contribution to the spread of the seeds' values, over their number."""
    freedom: float


def _parts(auc: float, members: float, seeds: int, assumed: Assumptions) -> _Parts:
    outside = members * assumed.nonmembers_per_member
    row_variance = auc_variance(auc, members, outside) * assumed.design_effect
    return _Parts(
        items=row_variance * (assumed.shared + (1 - assumed.shared) / seeds),
        seeds=assumed.seed_deviation**2 / seeds if seeds >= FROM_SEEDS else 0.0,
        own=row_variance * (1 - assumed.shared) / seeds,
        freedom=max((members + outside) / assumed.design_effect - 2, 1.0),
    )


def auc_variance(auc: float, members: float, nonmembers: float) -> float:
    """Return the variance of an AUC of independent rows with normal scores of equal variance."""
    from scipy.stats import multivariate_normal, norm

    z = float(norm.ppf(auc))
    # Two members above one non-member: their distances from it are correlated by a half.
    both = float(multivariate_normal.cdf([z, z], mean=[0, 0], cov=[[1, 0.5], [0.5, 1]]))
    alone = auc * (1 - auc)
    return (alone + (members + nonmembers - 2) * (both - auc**2)) / (members * nonmembers)


def auc_power(members: float, seeds: int, assumed: Assumptions) -> float:
    """Return the power to distinguish the assumed AUC from 0.5.

    Args:
        members: of one seed.
        seeds: how many models.
        assumed: all else.
    """
    parts = _parts(assumed.auc, members, seeds, assumed)
    effect = log(assumed.auc / (1 - assumed.auc)) * assumed.auc * (1 - assumed.auc)
    return _power(effect, parts, seeds, assumed.confidence)


def difference_power(delta: float, members: float, seeds: int, assumed: Assumptions) -> float:
    """Return the power to see that one arm's AUC is `delta` above another's on the same rows.

    Args:
        delta: the difference.
        members: of one seed.
        seeds: how many models of either arm.
        assumed: all else.
    """
    parts = _parts(assumed.auc, members, seeds, assumed)
    other = _parts(assumed.auc + delta, members, seeds, assumed)
    apart = _Parts(
        items=_difference_variance(parts.items, other.items, assumed.correlation),
        seeds=_difference_variance(parts.seeds, other.seeds, assumed.seed_correlation),
        own=_difference_variance(parts.own, other.own, assumed.correlation),
        freedom=parts.freedom,
    )
    return _power(delta, apart, seeds, assumed.confidence)


def _difference_variance(first: float, second: float, correlation: float) -> float:
    return first + second - 2 * correlation * sqrt(first * second)


def needed_members(seeds: int, assumed: Assumptions, *, delta: float | None = None) -> int | None:
    """Return the fewest members that give the wanted power; None if no number does.

    Args:
        seeds: how many models.
        assumed: all else.
        delta: a difference of two arms; None means the assumed AUC against 0.5.
    """

    def power(members: int) -> float:
        if delta is None:
            return auc_power(members, seeds, assumed)
        return difference_power(delta, members, seeds, assumed)

    low, high = 2, 4
    while power(high) < WANTED:
        low, high = high, 2 * high
        if high > _MOST:
            return None
    return bisect_left(range(high), WANTED, lo=low + 1, key=power)


def seen_difference(members: float, seeds: int, assumed: Assumptions) -> float | None:
    """Return the smallest difference that has the wanted power; None if none below 1 has."""

    def enough(delta: float) -> bool:
        return difference_power(delta, members, seeds, assumed) >= WANTED

    high = 1 - assumed.auc - 1e-6
    return _find_smallest(0.0, high, enough) if enough(high) else None


def seen_auc(members: float, seeds: int, assumed: Assumptions) -> float | None:
    """Return the smallest AUC above 0.5 that has the wanted power; None if none has."""

    # Beyond some AUC a seed's deviation exceeds the distance to 1, so take the first detected.
    def enough(auc: float) -> bool:
        return auc_power(members, seeds, replace(assumed, auc=auc)) >= WANTED

    high = next(filter(enough, np.arange(0.51, 0.96, 0.01).tolist()), None)
    return None if high is None else _find_smallest(high - 0.01, high, enough, halvings=12)


def _find_smallest(
    low: float, high: float, enough: Callable[[float], bool], halvings: int = 20
) -> float:
    """Return the smallest number that is enough, between one that is not and one that is."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _power(effect: float, parts: _Parts, seeds: int, confidence: float) -> float:
    """Return the probability that an interval with these variances excludes zero."""
    from scipy.stats import chi2, nct, norm, t

    if seeds < FROM_SEEDS:
        limit = float(t.ppf((1 + confidence) / 2, parts.freedom))
        moved = effect / sqrt(parts.items)
        power = float(nct.sf(limit, parts.freedom, moved) + nct.cdf(-limit, parts.freedom, moved))
        # scipy gives nan far out, where the probability is 1.
        return power if power == power else float(abs(moved) > limit)
    chances = (np.arange(_NODES) + 0.5) / _NODES
    between = (parts.seeds + parts.own) * chi2.ppf(chances, seeds - 1) / (seeds - 1)
    # As `analysis.intervals.joint`: the seeds' variance, and what their rows share.
    total = between + max(parts.items - parts.own, 0.0)
    freedom = (seeds - 1) * (total / between) ** 2
    limit = t.ppf((1 + confidence) / 2, freedom) * np.sqrt(total)
    spread = sqrt(parts.items + parts.seeds)
    beyond = norm.sf((limit - effect) / spread) + norm.cdf((-limit - effect) / spread)
    return float(beyond.mean())


def variance_components(
    study: Study, aucs_by_arm: Sequence[Numbers], detector: str
) -> Iterator[dict[str, Any]]:
    """Yield the variances of one detector, all datasets pooled, members with a copy.

    Of a pair of arms, the members are those of the arm with fewer.

    Args:
        study: all arms.
        aucs_by_arm: the detector's AUC of all members with a copy, in each arm.
        detector: which.
    """
    head = {"kind": VARIANCE, "dataset": POOLED, "detector": detector}
    for arm, numbers in zip(study.arms, aucs_by_arm, strict=True):
        aucs = _usable_seeds(numbers.by_seed())
        counts = {"n_members": int(aucs.members.sum()), "n_seeds": len(aucs.value)}
        for term, value in _arm_variances(aucs):
            yield {**arm.cohort.columns(), **head, "term": term, "value": value, **counts}
    for cohort, axis, first, second in study.pairs():
        aucs = _usable_seeds(join_numbers([aucs_by_arm[first], aucs_by_arm[second]]).by_seed())
        members = int(aucs.members.sum(axis=0).min())
        counts = {"n_members": members, "n_seeds": len(aucs.value)}
        place = {**cohort.columns(), **head, "factor": axis}
        for term, value in _pair_correlations(aucs):
            yield {**place, "term": term, "value": value, **counts}


def typical(values: Iterable[float]) -> float | None:
    """Return the median; None without any."""
    finite = [value for value in values if np.isfinite(value)]
    return float(np.median(finite)) if finite else None


def _usable_seeds(aucs: BySeed) -> BySeed:
    """Return numbers under the seeds in which all of them, one or more, have enough groups."""
    measured = np.isfinite(aucs.value) & (aucs.groups >= LEAST_GROUPS)
    usable = np.asarray(measured.any(axis=1) & measured.all(axis=1), dtype=bool)
    return aucs.part(usable, slice(None))


def _arm_variances(aucs: BySeed) -> Iterator[tuple[str, float]]:
    """Yield how variances compare with those of independent rows, and what seeds share or add."""
    count = len(aucs.value)
    if not count:
        return
    single, shared, seeds = _split(aucs.value[:, 0], aucs.influence[:, 0])
    columns = np.clip(aucs.value[:, 0], 0.01, 0.99), aucs.members[:, 0], aucs.nonmembers[:, 0]
    expected = [auc_variance(*map(float, each)) for each in zip(*columns, strict=True)]
    yield "design_effect", single / float(np.mean(expected))
    if count > 1:
        yield "shared", shared
    if count >= FROM_SEEDS:
        yield "seed_deviation", float(np.sqrt(seeds))


def _pair_correlations(aucs: BySeed) -> Iterator[tuple[str, float]]:
    """Yield the correlation of two arms by their rows, and from three seeds on by their seeds."""
    if not len(aucs.value):
        return
    first, second = (aucs.influence[:, k] for k in (0, 1))
    squares = float(np.square(first).sum() * np.square(second).sum())
    if squares > 0:
        yield "correlation", float(np.clip((first * second).sum() / np.sqrt(squares), -1.0, 1.0))
    if len(aucs.value) < FROM_SEEDS:
        return
    values = aucs.value[:, 0], aucs.value[:, 1]
    variances = [_split(*each)[2] for each in zip(values, (first, second), strict=True)]
    apart = _split(values[0] - values[1], first - second)[2]
    if min(variances) > 0:
        correlation = (sum(variances) - apart) / (2 * np.sqrt(variances[0] * variances[1]))
        yield "seed_correlation", float(np.clip(correlation, -1.0, 1.0))


def _split(value: Floats, influence: Floats) -> tuple[float, float, float]:
    """Return the variance of one seed's AUC from its rows, the part of that which all seeds share
    (0 to 1), and the variance of the seeds' true values."""
    count = len(value)
    single = float(np.square(influence).sum() / count)
    if count < 2 or single <= 0:
        return single, 0.0, 0.0
    items = float(np.square(influence.mean(axis=0)).sum())
    shared = float(np.clip((count * items - single) / (count - 1), 0.0, single))
    between = float(value.var(ddof=1))
    return single, shared / single, max(between - (single - shared), 0.0)
