"""Where a new detector stands: all detectors of one arm measured by the rule of the report.

Settings are chosen on `tune`, everything is measured on `test`, on the rows that all detectors can
score; one that cannot score many of them is measured on rows of its own. Differences are paired:
both detectors on the same rows, with the same resamplings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.arm import MODEL_FREE, UPPER_BOUNDS, Cohort, Column, LoadedArm
from analysis.auc_cells import ColumnMetrics, measure_columns
from analysis.copy_bins import ALL
from analysis.findings import question_table
from analysis.intervals.estimate import Estimate
from analysis.metrics import tpr_name
from analysis.metrics_table import Cell, CohortMetrics, split_by_cohort
from analysis.selection.ranking import highest_first, reported_cell
from analysis.selection.tuning import choose_settings, reported_columns
from analysis.settings import AnalysisSettings
from analysis.tables import POOLED, PreparedCohort
from analysis.uncertainty.column_intervals import CellInterval, difference_intervals

_EVERY_ROW = 0.999_999
"""As `max_unscored`: no detector of a pair is set apart, so both are measured on the same rows."""


class Difference(NamedTuple):
    """The AUC of a judged detector minus that of another, on the same rows."""

    detector: str
    setting: str
    versus: str
    versus_setting: str
    dataset: str
    copies: str
    estimate: Estimate
    n_members: int
    n_nonmembers: int
    own_rows: bool
    """Whether these are the rows that both of them can score, in place of those of the table."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One line of the ranking."""

    detector: str
    setting: str
    selection: str
    """`tuned`, or `default` where nothing could be chosen."""
    judged: bool
    """Whether it is one of those that are judged."""
    role: str
    """Empty for a contestant; `control` (no model), `upper bound` (more than an auditor knows)."""
    rank: int | None
    """By AUC among the contestants; None for others, and where there is no AUC."""
    auc: Cell | None
    tpr: Mapping[float, Cell | None]
    """By false-positive rate."""
    own_rows: bool
    """Whether it is measured on rows of its own, as it could not score many."""


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All detectors of one arm."""

    lines: tuple[Ranked, ...]
    """The highest AUC first."""
    table: CohortMetrics
    """By dataset, copies and metric."""
    metrics: pa.Table
    """The same as a table."""
    differences: tuple[Difference, ...]
    reported: Mapping[str, Column]
    """The setting that stands for each detector."""

    def line(self, detector: str) -> Ranked:
        """Return the line of a detector."""
        return next(one for one in self.lines if one.detector == detector)

    def difference(self, detector: str, versus: str) -> Difference | None:
        """Return the pooled difference of a judged detector to another."""
        wanted = (detector, versus, POOLED, ALL)
        return next(
            (
                one
                for one in self.differences
                if (one.detector, one.versus, one.dataset, one.copies) == wanted
            ),
            None,
        )


def rank(
    cohort: Cohort,
    loaded: Sequence[LoadedArm],
    judged: Sequence[str],
    settings: AnalysisSettings,
) -> Ranking:
    """Measure and rank all detectors of an arm.

    Args:
        cohort: which arm.
        loaded: its models, one a seed, with the judged detectors' columns.
        judged: the names of these.
        settings: of the analysis.
    """
    choices = choose_settings(loaded, settings)
    picked = reported_columns(loaded, choices)
    work = PreparedCohort.prepare(cohort, loaded, list(picked), settings)
    measured = measure_columns(work.arms, list(picked), work.datasets, work.cells, settings)
    rows = [
        row
        for column, selections in picked.items()
        for selection in selections
        for row in work.metric_rows(column, selection, measured[column])
    ]
    keys = [key for key, _ in cohort.axes]
    metrics = question_table("metrics", keys, rows)
    (table,) = split_by_cohort(metrics, keys)
    reported = {
        choice.detector: column
        for choice in choices
        for column in (Column(choice.detector, choice.tuned or choice.default),)
        if column in picked
    }
    apart = {
        column for arm in work.arms for compared in arm.compared.values() for column in compared.own
    }
    return Ranking(
        lines=_lines(table, reported, apart, judged, settings),
        table=table,
        metrics=metrics,
        differences=tuple(
            one
            for name in judged
            if name in reported
            for one in _differences(work, reported, name, measured, apart)
        ),
        reported=reported,
    )


def _lines(
    table: CohortMetrics,
    reported: Mapping[str, Column],
    apart: set[Column],
    judged: Sequence[str],
    settings: AnalysisSettings,
) -> tuple[Ranked, ...]:
    cells = {name: reported_cell(table, name) for name in reported}

    names = sorted(cells)
    values = [nan if (cell := cells[name]) is None else cell.value for name in names]
    lines: list[Ranked] = []
    rank = 0
    for name in (names[at] for at in highest_first(values)):
        role = "control" if name in MODEL_FREE else "upper bound" if name in UPPER_BOUNDS else ""
        cell = cells[name]
        placed = not role and cell is not None and isfinite(cell.value)
        rank += placed
        selection = "default" if table.get(name, selection="tuned") is None else "tuned"
        lines.append(
            Ranked(
                detector=name,
                setting=reported[name].setting,
                selection=selection,
                judged=name in judged,
                role=role,
                rank=rank if placed else None,
                auc=cell,
                tpr={
                    rate: table.get(name, selection=selection, metric=tpr_name(rate))
                    for rate in settings.false_positive_rates
                },
                own_rows=reported[name] in apart,
            )
        )
    return tuple(lines)


def _differences(
    work: PreparedCohort,
    reported: Mapping[str, Column],
    name: str,
    measured: Mapping[Column, ColumnMetrics],
    apart: set[Column],
) -> Iterator[Difference]:
    """Yield the paired differences of one detector to all others, of every dataset and cell."""
    column = reported[name]
    for other in reported.values():
        if other == column:
            continue
        own = column in apart or other in apart
        mine, theirs, pair = measured[column], measured[other], work
        if own:
            pair = _pair(work, column, other)
            both = measure_columns(
                pair.arms, [column, other], pair.datasets, pair.cells, pair.settings
            )
            mine, theirs = both[column], both[other]
        for d, dataset in enumerate([POOLED, *pair.datasets]):
            (gaps,) = difference_intervals(
                [mine.sample],
                theirs.sample,
                dataset if d else None,
                confidence=pair.settings.confidence,
                wanted=range(len(pair.cells)),
            )
            for c, cell in enumerate(pair.cells):
                members = int(mine.n_members[d, 0, c])
                if cell.label != ALL and members < pair.settings.min_members:
                    continue
                yield Difference(
                    *column,
                    *other,
                    dataset,
                    cell.label,
                    _gap(mine, theirs, (d, 0, c), gaps[c]),
                    members,
                    int(mine.n_nonmembers[d, 0, c]),
                    own,
                )


def _pair(work: PreparedCohort, column: Column, other: Column) -> PreparedCohort:
    """Return the same work on the rows that both of two columns can score."""
    return PreparedCohort.prepare(
        work.cohort,
        [arm.loaded for arm in work.arms],
        [column, other],
        work.settings.model_copy(update={"max_unscored": _EVERY_ROW}),
    )


def _gap(
    mine: ColumnMetrics, theirs: ColumnMetrics, at: tuple[int, int, int], interval: CellInterval
) -> Estimate:
    gap = float(mine.values[at] - theirs.values[at])
    if not np.isfinite(gap):
        return Estimate(gap, gap, gap, "one of the two has no AUC")
    reason = interval.about.removeprefix("none: ") if np.isnan(interval.low) else None
    return Estimate(gap, interval.low, interval.high, reason)
