"""All cells of detectors' settings: columns × datasets × metrics × numbers of copies.

A cell is a weighted mean over its members of their placement among the non-members of
their *own* dataset. The pooled dataset `all` is the mean of the datasets weighted by
members: the covariate-adjusted ROC curve of Janes and Pepe (Biometrika 96, 2009). Its AUC
is the chance that a random member scores above a random non-member of the same dataset,
and its TPR sets one threshold for each dataset; so a detector cannot win by telling
datasets apart, and one whose scale differs between datasets does not lose. With one
dataset, `all` equals it.

Columns are measured one by one. Cost: 15 ms for three seeds of 400 rows, with all intervals.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from analysis.arm import Cohort, DetectorColumn, LoadedArm
from analysis.compared_rows import ComparedRows, compare_rows
from analysis.copy_bins import ALL, EVERY_MEMBER, CopiesCell, copies_cells
from analysis.intervals.clustered import mean_of_seeds
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Counts, Floats, Mask, accepted_shares
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import (
    EQUAL,
    Rows,
    auc_numbers,
    number_groups,
    tpr_numbers,
    trend_numbers,
    unsupported,
)
from analysis.metrics import AUC, POOLED, SUPPORT, TREND, supports_rate, tpr_name
from analysis.settings import AnalysisSettings


@dataclass(frozen=True, kw_only=True)
class PreparedCohort:
    """One cohort made ready: rows and cells shared by its columns."""

    cohort: Cohort
    loaded: Sequence[LoadedArm]
    """One a seed."""
    compared: Sequence[Mapping[str, ComparedRows]]
    """Of each arm, by dataset."""
    cells: Sequence[CopiesCell]
    settings: AnalysisSettings

    @classmethod
    def prepare(
        cls,
        cohort: Cohort,
        loaded: Sequence[LoadedArm],
        columns: Sequence[DetectorColumn],
        settings: AnalysisSettings,
    ) -> "PreparedCohort":
        """Find comparable rows, and lay out the cells."""
        compared = [
            {
                dataset: compare_rows(arm, columns, dataset, cohort=cohort, settings=settings)
                for dataset in dict.fromkeys(arm.dataset[arm.test])
            }
            for arm in loaded
        ]
        cells = _cells(loaded, settings)
        return cls(cohort=cohort, loaded=loaded, compared=compared, cells=cells, settings=settings)

    def subset(
        self, masks: Iterable[Mask], cells: Sequence[CopiesCell] | None = None
    ) -> "PreparedCohort":
        """Return the same work on some rows of each arm, and for some cells."""
        compared = [
            {name: rows.subset(mask) for name, rows in own.items()}
            for own, mask in zip(self.compared, masks, strict=True)
        ]
        return replace(self, compared=compared, cells=self.cells if cells is None else cells)

    @property
    def datasets(self) -> list[str]:
        """The datasets with a test row, in order of first appearance."""
        return list(dict.fromkeys(name for compared in self.compared for name in compared))

    @cached_property
    def rows(self) -> Rows:
        """All rows of all seeds."""
        return cohort_rows(self.loaded)

    @cached_property
    def copies(self) -> Counts:
        """Realised copies of all rows."""
        return np.concatenate([arm.copies for arm in self.loaded])

    def scores(self, column: DetectorColumn) -> Floats:
        """Return the scores of all rows."""
        return np.concatenate([arm.scores[:, arm.index[column]] for arm in self.loaded])

    def sides(self, column: DetectorColumn) -> tuple[Mask, Mask]:
        """Return the members and the non-members that a column is measured on."""
        used = [
            np.any([np.zeros_like(arm.test), *(c.rows(column) for c in compared.values())], axis=0)
            for arm, compared in zip(self.loaded, self.compared, strict=True)
        ]
        inside, outside = compared_sides(self.rows.member, self.copies, self.settings)
        used_rows = np.concatenate(used)
        return used_rows & inside, used_rows & outside

    def sample_name(self, dataset: str) -> str | None:
        """Return by which name `Numbers` know a dataset; the only one is all of them."""
        return None if dataset == POOLED or len(self.datasets) == 1 else dataset


def _cells(loaded: Sequence[LoadedArm], settings: AnalysisSettings) -> list[CopiesCell]:
    if any(arm.arm.copies is None for arm in loaded):
        return [EVERY_MEMBER]
    counts = [count for arm in loaded for count in arm.copies[arm.member & arm.test].tolist()]
    least = 1 if settings.zero_copies == "nonmember" else 0
    cells = copies_cells(counts, high_copies=settings.high_copies)
    return [cell for cell in cells if cell.high >= least]


def cohort_rows(loaded: Sequence[LoadedArm]) -> Rows:
    """Return the rows of all arms, members against non-members."""
    # A group has one number of copies, so each number is a stratum of whole groups.
    laid_out = all(arm.arm.fixed_levels and arm.arm.copies is not None for arm in loaded)
    dataset = np.concatenate([arm.dataset for arm in loaded])
    group = np.concatenate([arm.group for arm in loaded])
    member = np.concatenate([arm.member for arm in loaded])
    return Rows(
        seed=np.repeat(np.arange(len(loaded)), [len(arm.member) for arm in loaded]),
        dataset=dataset,
        group=number_groups(dataset.tolist(), group.tolist()),
        member=member,
        nonmember=~member,
        levels=np.concatenate([arm.copies for arm in loaded]) if laid_out else None,
    )


def compared_sides(member: Mask, copies: Counts, settings: AnalysisSettings) -> tuple[Mask, Mask]:
    """Return which rows count as members (zero copies among them, if apart), and which do not."""
    inside = member if settings.zero_copies == "apart" else member & (copies > 0)
    return inside, ~inside


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
        finite_scores = np.where(self.comparable, scores, np.nan)
        return auc_numbers(self.rows, finite_scores, self.within, least=1)

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


Cells = Mapping[tuple[str, str, str], Estimate]
"""By dataset (`all` first), metric and number of copies."""


@dataclass(frozen=True, kw_only=True)
class ColumnMetrics:
    """The numbers of one column."""

    cells: Cells
    """Rows and seeds are those that the value is the mean of; of all seeds if there is none."""
    auc: Numbers
    """What differences are made of."""
    trends: Numbers
    compared: ComparedColumn

    def aucs(self, dataset: str) -> dict[str, Estimate]:
        """Return the AUCs of a dataset by number of copies."""
        return {
            copies: estimate
            for (name, metric, copies), estimate in self.cells.items()
            if (name, metric) == (dataset, AUC)
        }


def measure_columns(
    work: PreparedCohort, columns: Iterable[DetectorColumn]
) -> dict[DetectorColumn, ColumnMetrics]:
    """Compute every cell of columns over the arms of a cohort."""
    return {column: _measure(compare_column(work, column), work) for column in columns}


def compare_column(work: PreparedCohort, column: DetectorColumn) -> ComparedColumn:
    """Return the comparison of one column."""
    inside, outside = work.sides(column)
    rows, scores = replace(work.rows, member=inside, nonmember=outside), work.scores(column)
    comparable = np.zeros(len(scores), dtype=bool)
    tied: list[dict[str, bool]] = []
    for places, datasets in zip(rows.places, work.compared, strict=True):
        reasons = {name: unsupported(rows, scores, places[name]) for name in datasets}
        tied.append({name: reason == EQUAL for name, reason in reasons.items()})
        for name, reason in reasons.items():
            comparable[places[name]] = reason in (None, EQUAL)
    meaning = [arm.arm.copies is not None for arm in work.loaded for _ in arm.examples]
    return ComparedColumn(
        rows=rows,
        comparable=comparable,
        tied=tied,
        scores=scores,
        copies=np.where(meaning, work.copies, -1),
        within=np.array([cell.holds(work.copies) for cell in work.cells], dtype=bool),
    )


def _measure(compared: ComparedColumn, work: PreparedCohort) -> ColumnMetrics:
    """Measure one column."""
    rates, level = work.settings.false_positive_rates, work.settings.confidence
    auc, tprs = compared.aucs(compared.scores), [compared.tprs(rate) for rate in rates]
    trends = compared.trends(compared.scores)
    metrics = [AUC, *map(tpr_name, rates)]
    cells: dict[tuple[str, str, str], Estimate] = {}
    for dataset in (POOLED, *work.datasets):
        name = work.sample_name(dataset)
        several = [auc, *tprs]
        if name is not None:
            several[1:] = [_separate_rates(*pair) for pair in zip(tprs, rates, strict=True)]
        own = None if dataset == POOLED else dataset
        values, members, nonmembers = _values(compared, auc, tprs, rates, own)
        measured = np.isfinite(values)
        counted = np.where(measured.any(axis=0), measured, members > 0)
        inside, outside = ((rows * counted).sum(axis=0) for rows in (members, nonmembers))
        means, seeds = mean_of_seeds(values), counted.sum(axis=0)
        measurements = [
            numbers.estimates(name, confidence=level) or [_NOTHING] * len(work.cells)
            for numbers in several
        ]
        for c, cell in enumerate(work.cells):
            for m, metric in enumerate(metrics):
                cells[dataset, metric, cell.label] = (
                    measurements[m][c]
                    ._replace(
                        members=int(inside[m, c]),
                        nonmembers=int(outside[m, c]),
                        seeds=int(seeds[m, c]),
                    )
                    .around(float(means[m, c]))
                )
        cells[dataset, TREND, ALL] = (trends.estimates(name, confidence=level) or [_NOTHING])[0]
    return ColumnMetrics(cells=cells, auc=auc, trends=trends, compared=compared)


_NOTHING = no_estimate("no value")


def _separate_rates(tprs: Numbers, rate: float) -> Numbers:
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

    A single dataset has the largest k / m <= rate. Over several a threshold accepts k of m
    non-members with (k + 1) / (m + 1) <= rate: with k / m the rate to expect over many small
    datasets would be up to twice as high. Non-members of a dataset without a member in the cell
    do not affect its pooled value; a dataset whose scores are all equal has no value.
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
            visible = [
                np.full(shape[2], np.nan)
                if careful is None
                else _largest_rates(compared, s, name, rate)
                if len(names) == 1
                else careful.sample.value
                for careful, rate in zip(own, rates, strict=True)
            ]
            together.append((np.array([part.sample.value, *visible]), part.weight))
        if together and not all(compared.tied[s][name] for name in names):
            total = np.sum([weight for _, weight in together], axis=0)
            total = np.where(total > 0, total, np.nan)
            values[s] = sum(np.nan_to_num(value) * (weight / total) for value, weight in together)
    for m, rate in enumerate(rates, start=1):
        values[:, m][nonmembers[:, 0] * rate < SUPPORT - 1e-9] = np.nan
    values[np.broadcast_to(members < 2, shape)] = np.nan
    return values, members, nonmembers


def _largest_rates(compared: ComparedColumn, seed: int, dataset: str, rate: float) -> Floats:
    """Return the largest TPRs of one dataset whose FPR is at most the rate."""
    rows, at = compared.rows, compared.rows.places[seed][dataset]
    inside, outside = at[rows.member[at]], at[rows.nonmember[at]]
    sides = rows.sides(compared.scores, inside, outside)
    return accepted_shares(*sides, compared.within[:, inside], rate)
