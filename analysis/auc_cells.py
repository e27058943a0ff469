"""All cells of detectors' settings at once: columns × datasets × metrics × numbers of copies.

A cell is a weighted mean over its members of their placement among the non-members of
their *own* dataset. The pooled dataset `all` is the mean of the datasets weighted by
members: the covariate-adjusted ROC curve of Janes and Pepe (Biometrika 96, 2009). Its AUC
is the chance that a random member scores above a random non-member of the same dataset,
and its TPR sets one threshold for each dataset; so a detector cannot win by telling
datasets apart, and one whose scale differs between datasets does not lose. With one
dataset, `all` equals it.

Columns are measured one by one. Cost: 15 ms for three seeds of 400 rows, with all intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from analysis.arm import Column, LoadedArm
from analysis.compared_rows import ComparedRows, Mask
from analysis.copy_bins import CopiesCell
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Counts, accepted_shares
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import (
    EQUAL,
    Rows,
    auc_numbers,
    degenerate_reason,
    tpr_numbers,
    trend_numbers,
)
from analysis.metrics import SUPPORT, Floats, supports_rate
from analysis.settings import AnalysisSettings


class GroupNumbers(NamedTuple):
    """The groups of one arm as numbers: one group has one number in every seed of a cohort."""

    of_row: Counts
    """[n_examples], counted from 0 within each dataset."""
    counts: Mapping[str, int]
    """Groups of each dataset over all seeds."""


@dataclass(frozen=True, kw_only=True)
class ArmRows:
    """One arm with what all its columns share."""

    loaded: LoadedArm
    compared: Mapping[str, ComparedRows]
    """By dataset."""
    groups: GroupNumbers


@dataclass(frozen=True, kw_only=True)
class ComparedColumn:
    """The rows of all seeds that one column is measured on."""

    rows: Rows
    comparable: Mask
    """Rows of the datasets whose two sides support an AUC, [n]."""
    tied: Sequence[Mapping[str, bool]]
    """Of each seed, by dataset: whether all scores are equal."""
    scores: Floats
    copies: Counts
    """Of members; -1 if copies have no meaning."""
    within: Mask
    """Which rows have each number of copies, [cells, n]."""

    def aucs(self, scores: Floats) -> Numbers:
        """Return the AUCs of some scores of these rows, by number of copies."""
        there = np.where(self.comparable, scores, np.nan)
        return auc_numbers(self.rows, there, self.within, least=1)

    def tprs(self, rate: float) -> Numbers:
        """Return the TPRs in the seeds whose non-members support the rate together."""
        scores = np.where(self.comparable, self.scores, np.nan)
        for seed in self.rows.places:
            at = np.concatenate([*seed.values()])
            if not supports_rate(rate, int(self.rows.nonmember[at].sum())):
                scores[at] = np.nan
        return tpr_numbers(self.rows, scores, rate, self.within)

    def trends(self, scores: Floats) -> Numbers:
        """Return Somers' D of some scores given copies among members."""
        member = self.rows.member & (self.copies >= 0)
        rows = replace(self.rows, member=member, nonmember=np.zeros_like(member))
        return trend_numbers(rows, scores, self.copies)


@dataclass(frozen=True, kw_only=True)
class ColumnMetrics:
    """The numbers of one column: of `all`, then of each dataset."""

    cells: Sequence[Sequence[Sequence[Estimate]]]
    """By dataset, metric (AUC first, then the TPRs) and number of copies. Rows and seeds are those
    that the value is the mean of; of all seeds if there is none."""
    trend: Sequence[Estimate]
    """By dataset: Somers' D of score given copies among members."""
    auc: Numbers
    """What differences are made of."""
    trends: Numbers
    compared: ComparedColumn


def number_groups(arms: Sequence[LoadedArm]) -> list[GroupNumbers]:
    """Number the groups of all arms of a cohort, dataset by dataset."""
    numbers: dict[str, dict[str, int]] = {}
    found = []
    for arm in arms:
        of_row = np.zeros(len(arm.examples), dtype=np.int64)
        for row, (dataset, group) in enumerate(
            zip(arm.dataset.tolist(), arm.group.tolist(), strict=True)
        ):
            known = numbers.setdefault(dataset, {})
            of_row[row] = known.setdefault(group, len(known))
        found.append(of_row)
    counts = {dataset: len(known) for dataset, known in numbers.items()}
    return [GroupNumbers(of_row, counts) for of_row in found]


def cohort_rows(
    loaded: Sequence[LoadedArm], groups: Sequence[GroupNumbers], member: Mask, nonmember: Mask
) -> Rows:
    """Return the examples of all arms."""
    # A group has one number of copies, so each number is a stratum of whole groups.
    laid_out = all(arm.arm.fixed_levels and arm.arm.copies is not None for arm in loaded)
    return Rows(
        seed=np.repeat(np.arange(len(loaded)), [len(arm.examples) for arm in loaded]),
        dataset=np.concatenate([arm.dataset for arm in loaded]),
        group=np.concatenate([one.of_row for one in groups]),
        member=member,
        nonmember=nonmember,
        levels=np.concatenate([arm.copies for arm in loaded]) if laid_out else None,
    )


def measure_columns(
    arms: Sequence[ArmRows],
    columns: Sequence[Column],
    datasets: Sequence[str],
    cells: Sequence[CopiesCell],
    settings: AnalysisSettings,
) -> dict[Column, ColumnMetrics]:
    """Compute every cell of columns over the arms of a cohort (one arm a seed)."""
    return {
        column: _measure(_compared(arms, column, cells, settings), datasets, settings)
        for column in columns
    }


def _compared(
    arms: Sequence[ArmRows],
    column: Column,
    cells: Sequence[CopiesCell],
    settings: AnalysisSettings,
) -> ComparedColumn:
    """Return how one column is compared."""
    masks: list[list[Mask]] = []
    tied: list[dict[str, bool]] = []
    every = [arm.loaded.scores[:, arm.loaded.index[column]] for arm in arms]
    for arm, scores in zip(arms, every, strict=True):
        masks.append([np.zeros(len(scores), dtype=bool) for _ in range(3)])
        tied.append({})
        for dataset, rows in arm.compared.items():
            sides = compared_sides(arm.loaded, rows.rows(column), settings)
            reason = degenerate_reason(*(scores[side] for side in sides))
            one_group = any(len(np.unique(arm.groups.of_row[side])) < 2 for side in sides)
            tied[-1][dataset] = reason == EQUAL
            either = sides[0] | sides[1]
            supported = tied[-1][dataset] or not (reason or one_group)
            for mask, more in zip(masks[-1], (*sides, either & supported), strict=True):
                mask |= more
    member, nonmember, comparable = (np.concatenate(each) for each in zip(*masks, strict=True))
    loaded = [arm.loaded for arm in arms]
    copies = np.concatenate([arm.copies for arm in loaded])
    return ComparedColumn(
        rows=cohort_rows(loaded, [arm.groups for arm in arms], member, nonmember),
        comparable=comparable,
        tied=tied,
        scores=np.concatenate(every),
        copies=np.where(
            [arm.arm.copies is not None for arm in loaded for _ in arm.examples], copies, -1
        ),
        within=np.array([cell.holds(copies) for cell in cells], dtype=bool),
    )


def _measure(
    compared: ComparedColumn, datasets: Sequence[str], settings: AnalysisSettings
) -> ColumnMetrics:
    """Measure one column."""
    rates, level = settings.false_positive_rates, settings.confidence
    auc, tprs = compared.aucs(compared.scores), [compared.tprs(rate) for rate in rates]
    trends = compared.trends(compared.scores)
    cells, trend = [], []
    for dataset in (None, *datasets):
        # One dataset is all of them.
        name = dataset if len(datasets) > 1 else None
        several = [auc, *tprs]
        if name is not None:
            several[1:] = [_alone(*pair) for pair in zip(tprs, rates, strict=True)]
        values, members, nonmembers = _values(compared, auc, tprs, rates, dataset)
        there = np.isfinite(values)
        counted = np.where(there.any(axis=0), there, members > 0)
        columns = (
            _mean(values),
            *((rows * counted).sum(axis=0) for rows in (members, nonmembers)),
            counted.sum(axis=0),
        )
        cells.append(
            [
                [
                    estimate._replace(members=inside, nonmembers=outside, seeds=seeds).around(value)
                    for estimate, value, inside, outside, seeds in zip(
                        numbers.estimates(name, confidence=level)
                        or [_NOTHING] * len(compared.within),
                        *(column[m].tolist() for column in columns),
                        strict=True,
                    )
                ]
                for m, numbers in enumerate(several)
            ]
        )
        trend += trends.estimates(name, confidence=level) or [_NOTHING]
    return ColumnMetrics(cells=cells, trend=trend, auc=auc, trends=trends, compared=compared)


_NOTHING = no_estimate("no value")


def _alone(tprs: Numbers, rate: float) -> Numbers:
    """Return the TPRs of the datasets whose own non-members support the rate."""
    seeds = [
        {name: part for name, part in seed.items() if supports_rate(rate, part.nonmembers)}
        for seed in tprs.seeds
    ]
    return Numbers(seeds, tprs.scale)


def _values(
    compared: ComparedColumn,
    auc: Numbers,
    tprs: Sequence[Numbers],
    rates: Sequence[float],
    dataset: str | None,
) -> tuple[Floats, Counts, Counts]:
    """Return the values of each seed and the rows behind them, [seeds, metrics, cells].

    A dataset alone has the largest k / m <= rate. Over several a threshold accepts k of m
    non-members with (k + 1) / (m + 1) <= rate: with k / m the rate to expect over many small
    datasets would be up to twice as high. Non-members of a dataset without a member in the cell
    say nothing of its pooled value; one whose scores are all equal has no value alone.
    """
    shape = (len(auc.seeds), 1 + len(rates), len(compared.within))
    values = np.full(shape, np.nan)
    members, nonmembers = (np.zeros((shape[0], 1, shape[2]), dtype=np.int64) for _ in range(2))
    for s, seed in enumerate(auc.seeds):
        names = [name for name in compared.tied[s] if dataset in (None, name)]
        together: list[tuple[Floats, Floats]] = []
        for name in names:
            if name not in seed:
                continue
            part = seed[name]
            members[s] += part.weight.astype(np.int64)
            nonmembers[s] += np.where(part.weight > 0, part.nonmembers, 0)
            own = [tpr.seeds[s].get(name) for tpr in tprs]
            shown = [
                np.full(shape[2], np.nan)
                if careful is None
                else _accepted(compared, s, name, rate)
                if len(names) == 1
                else careful.sample.value
                for careful, rate in zip(own, rates, strict=True)
            ]
            together.append((np.array([part.sample.value, *shown]), part.weight))
        if together and not all(compared.tied[s][name] for name in names):
            total = np.sum([weight for _, weight in together], axis=0)
            shares = [_ratio(weight, total) for _, weight in together]
            values[s] = sum(
                np.nan_to_num(value) * share
                for (value, _), share in zip(together, shares, strict=True)
            )
    for m, rate in enumerate(rates, start=1):
        values[:, m][nonmembers[:, 0] * rate < SUPPORT - 1e-9] = np.nan
    values[np.broadcast_to(members < 2, shape)] = np.nan
    return values, members, nonmembers


def _accepted(compared: ComparedColumn, seed: int, dataset: str, rate: float) -> Floats:
    """Return the largest TPRs of one dataset whose FPR is at most the rate."""
    rows, at = compared.rows, compared.rows.places[seed][dataset]
    inside, outside = at[rows.member[at]], at[rows.nonmember[at]]
    sides = rows.sides(compared.scores, inside, outside)
    return accepted_shares(*sides, compared.within[:, inside], rate)


def compared_sides(loaded: LoadedArm, rows: Mask, settings: AnalysisSettings) -> tuple[Mask, Mask]:
    """Return the masks of members (zero copies among them, if apart) and of non-members."""
    zero = loaded.member & (loaded.copies == 0)
    if settings.zero_copies == "nonmember":
        return rows & loaded.member & ~zero, rows & (~loaded.member | zero)
    return rows & loaded.member, rows & ~loaded.member


def _mean(values: Floats) -> Floats:
    """Return the mean over the seeds that have a value; NaN if none has."""
    there = np.isfinite(values)
    return _ratio(np.where(there, values, 0.0).sum(axis=0), there.sum(axis=0))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerator / np.where(denominator > 0, denominator, np.nan)
