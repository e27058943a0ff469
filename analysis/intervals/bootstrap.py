"""A stratified bootstrap over groups, clustered over training seeds: what influence does not give.

Intervals of AUC, TPR, trends and differences come from influence values (`clustered`). This serves
quantities that have none of ours: gains in accuracy, fading by bins, scores of whole data sets, and
the checks of a new detector.

One resampling is a column of integer weights, one weight a row: whole groups are drawn with
replacement inside each stratum (dataset and side), so rows that share a passage stay
together. Weights are keyed by (seed, training seed, stratum) and drawn once for an arm;
every detector, metric and number of copies reads the same columns. Hence differences
between detectors are paired, and no interval depends on the order of computation.

Column 0 of every array of replicates is the sample itself (all weights one).

Statistics are weighted means over members of what the non-members say about them (their
*placement*), so one sort and one cumulative sum serve all cells. Cost: about 2 ms for 400
rows and 1,000 replicates on one core; memory 8 bytes times rows times replicates.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.metrics import Floats
from inject.keyed import Stream, generator, item_key

Weights = npt.NDArray[np.float32]


class Estimate(NamedTuple):
    """A value with its interval; NaN with a reason where there is none."""

    value: float
    low: float
    high: float
    reason: str | None = None
    """Why there is no value, or no interval."""
    caution: str | None = None
    """Why the interval is not to be trusted, or of which models alone it speaks."""


class Bounds(NamedTuple):
    """Lower and upper ends of intervals, same shape each."""

    low: Floats
    high: Floats


class PlacementValues(NamedTuple):
    """What the non-members say of each member, by replicate."""

    below: Floats
    """Weighted share of non-members with a lower score, ties half. [n_members, R + 1]."""
    total: Floats
    """Weight of all non-members. [R + 1]."""


def no_estimate(reason: str) -> Estimate:
    """Return an estimate that says why there is none."""
    return Estimate(float("nan"), float("nan"), float("nan"), reason)


def draw_weights(
    strata: Sequence[str], groups: Sequence[str], *, replicates: int, seed: int, cluster: str = ""
) -> Weights:
    """Draw the resampling weights of rows.

    Args:
        strata: the stratum of each row; as many groups are drawn from each as it has.
        groups: the group of each row; groups of two strata are different groups.
        replicates: R, the number of resamplings.
        seed: the bootstrap's seed.
        cluster: whose rows these are (the training seed): another cluster, other draws.

    Returns:
        Integer-valued weights [n_rows, R + 1]; column 0 is all ones.
    """
    stratum_of = np.asarray(strata, dtype=object)
    group_of = np.asarray(groups, dtype=object)
    weights = np.ones((len(stratum_of), replicates + 1), dtype=np.float32)
    for stratum in sorted(set(strata)):
        rows = np.flatnonzero(stratum_of == stratum)
        names, index = np.unique(group_of[rows].astype(str), return_inverse=True)
        n = len(names)
        random = generator(seed, Stream.BOOTSTRAP, item_key(f"{cluster}\0{stratum}"))
        picks = random.integers(0, n, size=(replicates, n))
        picks += np.arange(replicates)[:, None] * n
        counts = np.bincount(picks.ravel(), minlength=replicates * n).reshape(replicates, n)
        weights[rows, 1:] = counts.T[index]
    return weights


def placement_values(members: Floats, nonmembers: Floats, weights: Weights) -> PlacementValues:
    """Place each member among the non-members, in the sample and in every replicate.

    Args:
        members: scores [n_members].
        nonmembers: scores [n_nonmembers].
        weights: of the non-members [n_nonmembers, R + 1].
    """
    order = np.argsort(nonmembers, kind="stable")
    ascending = nonmembers[order]
    running = np.zeros((len(nonmembers) + 1, weights.shape[1]))
    np.cumsum(weights[order], axis=0, dtype=np.float64, out=running[1:])
    total = running[-1]
    lower = running[np.searchsorted(ascending, members, side="left")]
    below = running[np.searchsorted(ascending, members, side="right")]
    below += lower
    with np.errstate(invalid="ignore", divide="ignore"):
        below *= 0.5 / total
    return PlacementValues(below, total)


def concordance(scores: Floats, copies: npt.NDArray[np.int64], weights: Weights) -> Floats:
    """Return the sums behind Somers' D of score given copies, by replicate.

    Over all pairs of members whose copies differ: +1 where the one with more copies scores
    higher, -1 where lower, 0 for equal scores. D = sums[0] / sums[1] lies in [-1, 1], is 0
    without any relation, and for two doses equals 2 AUC - 1 (Somers 1962).

    Args:
        scores: [n]. copies: [n]. weights: [n, R + 1].

    Returns:
        [2, R + 1]: the sum of signs, and the number of pairs.
    """
    sums = np.zeros((2, weights.shape[1]))
    for level in sorted(set(copies.tolist()))[:-1]:
        more, equal = copies > level, copies == level
        placement = placement_values(scores[more], scores[equal], weights[equal])
        pairs = weights[more].sum(axis=0, dtype=np.float64) * placement.total
        higher = np.einsum("nr,nr->r", placement.below, weights[more]) * placement.total
        sums[0] += np.where(pairs > 0, 2 * higher - pairs, 0.0)
        sums[1] += pairs
    return sums


def combine_seeds(per_seed: Floats, *, seed: int) -> Floats:
    """Combine seeds: resample seeds with replacement, and groups within each.

    The value is the mean over seeds. With one seed nothing changes. A seed drawn twice
    contributes two different inner replicates. With few seeds the two stages together err
    on the wide side (the seeds' means already hold the inner noise).

    Args:
        per_seed: replicates [n_seeds, ..., R + 1]; NaN where a seed has no value.
        seed: the bootstrap's seed.

    Returns:
        Replicates [..., R + 1].
    """
    n_seeds, columns = len(per_seed), per_seed.shape[-1]
    if n_seeds == 1:
        return per_seed[0]
    replicates = columns - 1
    random = generator(seed, Stream.BOOTSTRAP, item_key(f"seeds\0{n_seeds}"))
    picks = random.integers(0, n_seeds, size=(n_seeds, replicates))
    stride = max(1, replicates // n_seeds)
    total = np.zeros(per_seed.shape[1:])
    found = np.zeros(per_seed.shape[1:])
    for slot in range(n_seeds):
        inner = (np.arange(replicates) + slot * stride) % replicates + 1
        drawn = np.empty(per_seed.shape[1:])
        drawn[..., 0] = per_seed[slot, ..., 0]
        drawn[..., 1:] = np.moveaxis(per_seed[picks[slot], ..., inner], 0, -1)
        there = np.isfinite(drawn)
        total += np.where(there, drawn, 0.0)
        found += there
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / found


def percentile_bounds(replicates: Floats, *, confidence: float) -> Bounds:
    """Return percentile intervals of replicates [..., R + 1] (column 0 is not one).

    NaN where the value is NaN or more than one replicate in twenty could not be computed.
    """
    tail = 50 * (1 - confidence)
    value, drawn = replicates[..., 0], replicates[..., 1:]
    missing = np.isnan(drawn).mean(axis=-1)
    usable = np.isfinite(value) & (missing <= 0.05)
    low, high = np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    whole = usable & (missing == 0)
    if whole.any():
        low[whole], high[whole] = np.percentile(drawn[whole], [tail, 100 - tail], axis=-1)
    for index in zip(*np.nonzero(usable & (missing > 0)), strict=True):
        low[index], high[index] = np.nanpercentile(drawn[index], [tail, 100 - tail])
    return Bounds(low, high)


def widen_at_limits(
    value: Floats, bounds: Bounds, n: npt.NDArray[np.int64], *, confidence: float
) -> Bounds:
    """Replace intervals of no width, where a bootstrap cannot see its own doubt.

    At 0 and 1 they get the exact binomial (Clopper-Pearson) bound for 0 or n successes in n
    rows; anywhere else there is no honest interval and both ends become NaN.

    Args:
        value, bounds: shape [...] each.
        n: rows behind the value: the smaller side for an AUC, members for a TPR.
    """
    flat = bounds.low == bounds.high
    with np.errstate(divide="ignore"):
        bound = ((1 - confidence) / 2) ** (1 / np.maximum(n, 1))
    inside = flat & (value != 0) & (value != 1)
    low = np.where(flat & (value == 1), bound, np.where(inside, np.nan, bounds.low))
    high = np.where(flat & (value == 0), 1 - bound, np.where(inside, np.nan, bounds.high))
    return Bounds(low, high)


def degenerate_reason(members: Floats, nonmembers: Floats) -> str | None:
    """Say why scores support no statement at all, or None where they do."""
    for side, scores in (("members", members), ("non-members", nonmembers)):
        if len(scores) == 0:
            return f"no {side}"
        if len(scores) == 1:
            return f"one row only among the {side}"
    first = members[0]
    if (members == first).all() and (nonmembers == first).all():
        return "all scores are equal"
    return None
