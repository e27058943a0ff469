"""All cells of one detector's setting at once: datasets × metrics × numbers of copies.

A cell is a weighted mean over its members of their placement among the non-members of
their *own* dataset. The pooled dataset `all` is the mean of the datasets weighted by
members: the covariate-adjusted ROC curve of Janes and Pepe (Biometrika 96, 2009). Its AUC
is the chance that a random member scores above a random non-member of the same dataset,
and its TPR sets one threshold for each dataset; so a detector cannot win by telling
datasets apart, and one whose scale differs between datasets does not lose. With one
dataset, `all` equals it.

Cost: about 3 ms for 400 rows and 1,000 replicates, for all cells together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.arm import Column, LoadedArm
from analysis.compared_rows import ComparedRows, Mask
from analysis.copy_bins import CopiesCell
from analysis.intervals.bootstrap import (
    Weights,
    accepted_members,
    combine_seeds,
    degenerate_reason,
    placement_values,
)
from analysis.metrics import Floats, supports_rate
from analysis.settings import AnalysisSettings
from analysis.uncertainty.samples import (
    ColumnSample,
    DatasetRows,
    DatasetSample,
    GroupNumbers,
    sample_dataset,
)

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ArmRows:
    """One arm with what all its columns share."""

    loaded: LoadedArm
    compared: Mapping[str, ComparedRows]
    """By dataset."""
    weights: Weights
    """[n_examples, R + 1]; rows of the tune split are all ones and never used."""
    groups: GroupNumbers


@dataclass(frozen=True, kw_only=True)
class ColumnMetrics:
    """Replicates of one column. Axis 0 runs over `all` and then the datasets (D + 1)."""

    values: Floats
    """[D + 1, metrics, cells, R + 1]; the AUC first, then the TPRs."""
    n_members: Counts
    """[D + 1, metrics, cells], summed over the seeds that the value is the mean of; over all
    seeds where there is no value."""
    n_nonmembers: Counts
    """[D + 1, metrics, cells], likewise."""
    n_seeds: Counts
    """[D + 1, metrics, cells]: how many seeds those are."""
    smaller_side: Counts
    """[D + 1, metrics, cells]: the smaller of members and non-members."""
    trend: Floats
    """[D + 1, R + 1]: Somers' D of score given copies among members."""
    trend_members: Counts
    """[D + 1], summed over seeds."""
    trend_seeds: Counts
    """[D + 1]."""
    sample: ColumnSample
    """The same with influence values: what intervals are made of."""
    intervals: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)
    """Of each dataset, once they were made: default and tuned setting are often one."""


def measure_column(
    arms: Sequence[ArmRows],
    column: Column,
    datasets: Sequence[str],
    cells: Sequence[CopiesCell],
    settings: AnalysisSettings,
) -> ColumnMetrics:
    """Compute every cell of one column over the arms of a cohort (one arm a seed)."""
    rates = settings.false_positive_rates
    shape = (len(arms), len(datasets) + 1, 1 + len(rates), len(cells), settings.replicates + 1)
    values = np.full(shape, np.nan)
    n_members = np.zeros((shape[0], shape[1], shape[3]), dtype=np.int64)
    n_nonmembers = np.zeros_like(n_members)
    trend = np.full((shape[0], shape[1], shape[4]), np.nan)
    trend_members = np.zeros(shape[:2], dtype=np.int64)
    samples: list[dict[str, DatasetSample]] = []
    for s, arm in enumerate(arms):
        samples.append({})
        numerator = np.zeros(shape[2:])
        weight = np.zeros((shape[3], shape[4]))
        trend_sums = np.zeros((2, shape[4]))
        tied = []
        sides = {
            d: compared_sides(arm.loaded, arm.compared[dataset].rows(column), settings)
            for d, dataset in enumerate(datasets, start=1)
            if dataset in arm.compared
        }
        total_nonmembers = sum(int(outside.sum()) for _, outside in sides.values())
        for d, (inside, outside) in sides.items():
            scores = arm.loaded.scores[:, arm.loaded.index[column]]
            pairs = _trend(arm, inside, scores)
            trend[s, d] = _ratio(pairs[0], pairs[1])
            if pairs[1, 0] > 0:
                trend_sums += pairs
                trend_members[s, d] = inside.sum()
            reason = degenerate_reason(scores[inside], scores[outside])
            if reason == "all scores are equal":
                tied.append(d)
            one_group = _one_group(arm.loaded, inside) or _one_group(arm.loaded, outside)
            comparable = reason == "all scores are equal" or not (reason or one_group)
            samples[s][datasets[d - 1]] = sample_dataset(
                DatasetRows(arm.loaded, arm.groups, datasets[d - 1], inside, outside, scores),
                cells,
                rates,
                total_nonmembers=total_nonmembers,
                comparable=comparable,
            )
            if not comparable:
                continue
            both = _sums(arm, inside, outside, scores, cells, rates, total_nonmembers)
            if d not in tied:
                values[s, d] = _ratio(both.alone, both.weights)
            numerator += both.alone if len(sides) == 1 else both.pooled
            weight += both.weights
            copies = arm.loaded.copies[inside]
            n_members[s, d] = [int(cell.holds(copies).sum()) for cell in cells]
            n_nonmembers[s, d] = outside.sum()
        n_members[s, 0] = n_members[s, 1:].sum(axis=0)
        # Non-members of a dataset without a member in the cell say nothing of its pooled value.
        n_nonmembers[s, 0] = np.where(n_members[s, 1:] > 0, n_nonmembers[s, 1:], 0).sum(axis=0)
        trend_members[s, 0] = trend_members[s, 1:].sum()
        if len(tied) < len(sides):
            values[s, 0] = _ratio(numerator, weight)
        trend[s, 0] = _ratio(trend_sums[0], trend_sums[1])
        for index, rate in enumerate(rates, start=1):
            for d, c in np.ndindex(shape[1], shape[3]):
                if not supports_rate(rate, int(n_nonmembers[s, d, c])):
                    values[s, d, index, c] = np.nan
    values[np.broadcast_to((n_members < 2)[:, :, None, :, None], shape)] = np.nan
    members_behind = np.broadcast_to(n_members[:, :, None], shape[:-1])
    nonmembers_behind = np.broadcast_to(n_nonmembers[:, :, None], shape[:-1])
    counted = _counted(values[..., 0], members_behind)
    return ColumnMetrics(
        values=combine_seeds(values, seed=settings.seed),
        n_members=(members_behind * counted).sum(axis=0),
        n_nonmembers=(nonmembers_behind * counted).sum(axis=0),
        n_seeds=counted.sum(axis=0),
        smaller_side=(np.minimum(members_behind, nonmembers_behind) * counted).sum(axis=0),
        trend=combine_seeds(trend, seed=settings.seed),
        trend_members=trend_members.sum(axis=0),
        trend_seeds=(trend_members > 0).sum(axis=0),
        sample=ColumnSample(tuple(samples)),
    )


def concordance(scores: Floats, copies: Counts, weights: Weights) -> Floats:
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


def compared_sides(loaded: LoadedArm, rows: Mask, settings: AnalysisSettings) -> tuple[Mask, Mask]:
    """Return the masks of members (zero copies among them, if apart) and of non-members."""
    zero = loaded.member & (loaded.copies == 0)
    if settings.zero_copies == "nonmember":
        return rows & loaded.member & ~zero, rows & (~loaded.member | zero)
    return rows & loaded.member, rows & ~loaded.member


class _Sums(NamedTuple):
    """What one dataset adds to the numbers of a column."""

    alone: Floats
    """Numerators of its own numbers, [metrics, cells, R + 1]."""
    pooled: Floats
    """Numerators of its part in the numbers of several datasets. There a threshold accepts k of m
    non-members with (k + 1) / (m + 1) <= rate: with k / m <= rate the rate to expect over many
    small datasets would be up to twice as high."""
    weights: Floats
    """[cells, R + 1]."""


def _sums(
    arm: ArmRows,
    inside: Mask,
    outside: Mask,
    scores: Floats,
    cells: Sequence[CopiesCell],
    rates: Sequence[float],
    total_nonmembers: int,
) -> _Sums:
    """Return the numerators and weights of one dataset."""
    members = np.flatnonzero(inside)
    members = members[np.argsort(arm.loaded.copies[members], kind="stable")]
    copies, starts = np.unique(arm.loaded.copies[members], return_index=True)
    placement = placement_values(scores[members], scores[outside], arm.weights[outside])
    member_weights = arm.weights[members].astype(np.float64)
    within = np.array([cell.holds(copies) for cell in cells], dtype=np.float64)

    def by_cell(terms: Floats) -> Floats:
        # Summed by count first: cells are few sums of those. Einsum keeps BLAS threads out,
        # which cost more than they gain at this size.
        return np.einsum("cl,lr->cr", within, np.add.reduceat(terms, starts, axis=0))

    sums = np.zeros((1 + len(rates), len(cells), member_weights.shape[1]))
    sums[0] = by_cell(placement.below * member_weights)
    pooled = sums.copy()
    for index, rate in enumerate(rates, start=1):
        if supports_rate(rate, total_nonmembers):
            sums[index] = by_cell(accepted_members(placement, rate) * member_weights)
            careful = accepted_members(placement, rate, expected=True)
            pooled[index] = by_cell(careful * member_weights)
    pooled[0] = sums[0]
    return _Sums(sums, pooled, by_cell(member_weights))


def _counted(value: Floats, members: Counts) -> npt.NDArray[np.bool_]:
    """Return which seeds stand behind each value: those that have one, else those with members.

    Args:
        value: [n_seeds, ...]; NaN where a seed has none.
        members: of the same shape.
    """
    there = np.isfinite(value)
    return np.where(there.any(axis=0), there, members > 0)


def _trend(arm: ArmRows, inside: Mask, scores: Floats) -> Floats:
    copies = arm.loaded.copies[inside]
    if arm.loaded.arm.copies is None or len(set(copies.tolist())) < 2:
        return np.zeros((2, arm.weights.shape[1]))
    return concordance(scores[inside], copies, arm.weights[inside])


def _one_group(loaded: LoadedArm, rows: Mask) -> bool:
    return len(set(loaded.group[rows])) < 2


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerator / np.where(denominator > 0, denominator, np.nan)
