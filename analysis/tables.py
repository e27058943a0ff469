"""The rows of the metrics and differences tables for one cohort."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import nan
from typing import Any

import numpy as np

from analysis.arm import MODEL_FREE, DetectorColumn
from analysis.auc_cells import ColumnMetrics, PreparedCohort
from analysis.checks.chance import column_error
from analysis.copy_bins import ALL, is_dose
from analysis.intervals.estimate import Estimate
from analysis.intervals.numbers import Numbers
from analysis.metrics import AUC, POOLED, TREND, TUNE_AUC
from analysis.selection.ranking import rank_detectors
from analysis.settings import AnalysisSettings

COPIES_CONTRAST = "copies"
"""Rows of what each factor does: two numbers of copies within one arm."""
Row = dict[str, Any]


def variants(work: PreparedCohort) -> dict[str, PreparedCohort]:
    """Return the same work for the members of each variant separately, against all non-members.

    Empty if all members' copies carried the same.
    """
    names = {name for arm in work.loaded for name in arm.variant[arm.member & arm.test]} - {""}
    cells = [cell for cell in work.cells if cell.label == ALL]
    return {
        name: work.subset([~arm.member | (arm.variant == name) for arm in work.loaded], cells)
        for name in sorted(names)
        if len(names) > 1
    }


def with_selections(rows: Iterable[Row], selections: Sequence[str]) -> list[Row]:
    """Return rows of a setting once for each selection that it stands for."""
    listed = list(rows)
    return [{**row, "selection": selection} for selection in selections for row in listed]


def metric_rows(
    work: PreparedCohort, column: DetectorColumn, measured: ColumnMetrics, *, variant: str = ALL
) -> Iterator[Row]:
    """Yield the metric rows of one column, without its selection.

    Args:
        work: the cohort.
        column: the detector's setting.
        measured: of this work and column.
        variant: what the members' copies carried; `all` for all of them.
    """
    least = work.settings.min_members
    cells = {cell.label: cell for cell in work.cells}
    for (dataset, metric, copies), estimate in measured.cells.items():
        row: Row = {**_head(work, column, dataset), "variant": variant, "copies": copies}
        if metric == TREND:
            if np.isfinite(estimate.value):
                yield {**row, "metric": metric, **estimate.row()}
            continue
        members = measured.cells[dataset, AUC, copies].members
        if copies != ALL and members < least:
            continue
        if members < least and np.isfinite(estimate.value):
            few = f"none: {members} members, fewer than min_members"
            estimate = estimate._replace(low=nan, high=nan, about=few, seed_low=nan, seed_high=nan)
        row |= {"metric": metric, **estimate.row()}
        if metric == AUC and copies in (ALL, "0") and variant == ALL:
            own = None if dataset == POOLED else dataset
            row["chance_error"] = column_error(work, column, cells[copies], own)
        yield row


def choice_rows(
    work: PreparedCohort, columns: Iterable[DetectorColumn], tune: Mapping[DetectorColumn, float]
) -> Iterator[Row]:
    """Yield what the best is chosen by.

    Args:
        work: the cohort.
        columns: of one selection.
        tune: the AUC of each on the tuning rows; NaN if there is none.
    """
    members = sum(int((~a.test & a.member & (a.copies > 0)).sum()) for a in work.loaded)
    nonmembers = sum(int((~a.test & ~a.member).sum()) for a in work.loaded)
    counts = {"members": members, "nonmembers": nonmembers, "seeds": len(work.loaded)}
    for column in columns:
        if np.isfinite(tune.get(column, nan)):
            value = Estimate(tune[column], nan, nan, "none: it is chosen by", **counts)
            head = _head(work, column, POOLED)
            yield {**head, "variant": ALL, "copies": ALL, "metric": TUNE_AUC, **value.row()}


def difference_rows(
    work: PreparedCohort,
    columns: Sequence[DetectorColumn],
    measured: Mapping[DetectorColumn, ColumnMetrics],
    tune: Mapping[DetectorColumn, float],
) -> Iterator[Row]:
    """Yield the paired AUC differences to `loss` and to the best of these columns.

    Columns take part that look at a model and are measured on the common rows.

    Args:
        work: the cohort.
        columns: of one selection.
        measured: of each column.
        tune: the AUC of each on the tuning rows, by which the best is chosen.
    """
    for dataset in (POOLED, *work.datasets):
        own = {
            column
            for compared in work.compared
            for name, rows in compared.items()
            if dataset in (POOLED, name)
            for column in rows.own
        }
        shared = [
            column for column in columns if column.detector not in MODEL_FREE and column not in own
        ]
        numbers = {column: measured[column].auc for column in shared}
        gap_of = paired_gaps(numbers, work.sample_name(dataset), work.settings)
        for c, cell in enumerate(work.cells):
            if is_dose(cell.label):
                continue
            cells = ((c, measured[c].cells[dataset, AUC, cell.label]) for c in shared)
            least = 0 if cell.label == ALL else work.settings.min_members
            aucs = {c: auc for c, auc in cells if np.isfinite(auc.value) and auc.members >= least}
            if not aucs:
                continue
            references = {"best": _find_best(aucs, tune)}
            references |= {c.detector: c for c in aucs if c.detector == "loss"}
            for reference, other in references.items():
                for column, auc in aucs.items():
                    if column == other:
                        continue
                    gap = gap_of(column, other)[c].around(auc.value - aucs[other].value)
                    yield {
                        **_head(work, column, dataset),
                        "copies": cell.label,
                        "versus": other.detector,
                        "versus_setting": other.setting,
                        "reference": reference,
                        "metric": AUC,
                        **gap.measures(),
                        **auc.counts(),
                    }


def dose_rows(
    work: PreparedCohort,
    columns: Sequence[DetectorColumn],
    measured: Mapping[DetectorColumn, ColumnMetrics],
) -> Iterator[Row]:
    """Yield what more copies do to each column's AUC, as rows of what each factor does.

    The most copies minus the fewest, then each number minus the one before: one family.

    Args:
        work: the cohort.
        columns: those that look at a model.
        measured: of each.
    """
    level = work.settings.confidence
    for dataset in (POOLED, *work.datasets):
        aucs = {column: [*measured[column].aucs(dataset).values()] for column in columns}
        families = {column: _dose_pairs(work, own) for column, own in aucs.items()}
        order = list(dict.fromkeys(families.values()))
        for column in sorted(columns, key=lambda column: order.index(families[column])):
            if not (pairs := families[column]):
                continue
            gaps = measured[column].auc.of(work.sample_name(dataset)).between(pairs)
            # Simultaneous (Bonferroni), and individual.
            bands = gaps.estimates(confidence=1 - (1 - level) / len(pairs))
            individual = gaps.estimates(confidence=level)
            for pair, band, alone in zip(pairs, bands, individual, strict=True):
                more_copies, fewer_copies = (aucs[column][c] for c in pair)
                yield {
                    **work.cohort.columns(),
                    "kind": COPIES_CONTRAST,
                    "factor": "copies",
                    "dataset": dataset,
                    **column._asdict(),
                    "level": work.cells[pair[0]].label,
                    "versus": work.cells[pair[1]].label,
                    "term": "difference",
                    "value": more_copies.value - fewer_copies.value,
                    "low": band.low,
                    "high": band.high,
                    "pointwise_low": alone.low,
                    "pointwise_high": alone.high,
                    "n_members": min(more_copies.members, fewer_copies.members),
                    "n_seeds": min(more_copies.seeds, fewer_copies.seeds),
                    "shown": "" if alone.reason else alone.about,
                    "reason": alone.reason or "",
                }


def _dose_pairs(work: PreparedCohort, aucs: Sequence[Estimate]) -> tuple[tuple[int, int], ...]:
    """Return the cells of numbers of copies that are compared; empty with fewer than two."""
    doses = [
        c
        for c, (cell, auc) in enumerate(zip(work.cells, aucs, strict=True))
        if is_dose(cell.label)
        and cell.low > 0
        and auc.members >= work.settings.min_members
        and np.isfinite(auc.value)
    ]
    ends = [(doses[-1], doses[0])] if len(doses) > 1 else []
    return tuple(dict.fromkeys([*ends, *zip(doses[1:], doses, strict=False)]))


def _head(work: PreparedCohort, column: DetectorColumn, dataset: str) -> Row:
    return {**work.cohort.place(), "dataset": dataset, **column._asdict()}


def _find_best(
    aucs: Mapping[DetectorColumn, Estimate], tune: Mapping[DetectorColumn, float]
) -> DetectorColumn:
    """Return the best of some columns in one cell, as the page calls it."""
    by_name = {column.detector: column for column in aucs}
    best = rank_detectors(
        {name: aucs[column] for name, column in by_name.items()},
        {name: tune.get(column, nan) for name, column in by_name.items()},
    )
    # Without a single interval there is no best, and any reference is as good as another.
    return by_name[next(iter(best), next(iter(by_name)))]


def paired_gaps(
    numbers: Mapping[DetectorColumn, Numbers], dataset: str | None, settings: AnalysisSettings
) -> Callable[[DetectorColumn, DetectorColumn], list[Estimate]]:
    """Return a function of two columns that finds their paired differences, each once."""

    @cache
    def gap(column: DetectorColumn, other: DetectorColumn) -> list[Estimate]:
        difference = numbers[column] - numbers[other]
        return difference.estimates(dataset, confidence=settings.confidence)

    return gap
