"""What the benchmark scores gained, arm by arm: the rows that the page and its figure show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from analysis.arm import Cohort, axis_column
from analysis.arm_words import arm_words
from analysis.metrics_table import Cell, plain_cell
from analysis.task_accuracy.contamination import MEAN, SCORINGS


class AccuracyGainRow(NamedTuple):
    """One arm, on one dataset or on the mean of all."""

    arm: str
    words: str
    """The arm in words; empty where there is but one."""
    dataset: str
    note: str
    accuracies: tuple[Cell | None, ...]
    """Members before and after, non-members before and after; None where there is no base."""
    changes: tuple[Cell | None, ...]
    """The excess, and what it is the difference of: the changes of members and non-members."""


@dataclass(frozen=True, kw_only=True)
class AccuracyGainTable:
    """All arms under one way of scoring."""

    scoring: str
    """`plain` or `calibrated`."""
    rows: tuple[AccuracyGainRow, ...]
    """One a row an arm: the mean of the datasets, or the only one."""
    by_dataset: tuple[AccuracyGainRow, ...]
    """One a row an arm and dataset; empty where there is only one dataset."""


class _Place(NamedTuple):
    cohort: Cohort
    dataset: str


_ACCURACIES = tuple(
    ("accuracy", side, moment) for side in ("member", "nonmember") for moment in ("before", "after")
)
_CHANGES = (("excess", "", ""), ("change", "member", ""), ("change", "nonmember", ""))


def accuracy_gain_tables(table: pa.Table, axes: Sequence[str]) -> list[AccuracyGainTable]:
    """Return the tables of the page, plain scores first.

    Args:
        table: as `analysis.task_accuracy.contamination.accuracy_table` gives it.
        axes: the swept axes.
    """
    found: dict[str, dict[_Place, dict[tuple[str, str, str], Cell]]] = {}
    for row in table.to_pylist():
        cohort = Cohort(tuple((key, row[axis_column(key)]) for key in axes), "contaminated")
        place = found.setdefault(row["scoring"], {}).setdefault(_Place(cohort, row["dataset"]), {})
        place[row["quantity"], row["side"], row["moment"]] = plain_cell(row)
    return [
        AccuracyGainTable(scoring=scoring, rows=tuple(whole), by_dataset=tuple(parts))
        for scoring in SCORINGS
        if scoring in found
        for whole, parts in [_split(found[scoring])]
    ]


def _split(
    places: dict[_Place, dict[tuple[str, str, str], Cell]],
) -> tuple[list[AccuracyGainRow], list[AccuracyGainRow]]:
    rows = [_row(place, cells) for place, cells in places.items()]
    several = any(row.dataset == MEAN for row in rows)
    if not several:
        return rows, []
    whole = [row for row in rows if row.dataset == MEAN]
    return whole, [row for row in rows if row.dataset != MEAN]


def _row(place: _Place, cells: dict[tuple[str, str, str], Cell]) -> AccuracyGainRow:
    after = cells["accuracy", "member", "after"]
    seeds = f", {after.n_seeds} seeds" if after.n_seeds > 1 else ""
    return AccuracyGainRow(
        arm=place.cohort.label(),
        words=arm_words(place.cohort.axes),
        dataset=place.dataset,
        note=f"{after.n_members} members, {after.n_nonmembers} non-members{seeds}",
        accuracies=tuple(cells.get(key) for key in _ACCURACIES),
        changes=tuple(cells.get(key) for key in _CHANGES),
    )
