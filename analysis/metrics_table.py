"""Reading the metrics table: typed rows, and the order in which cohorts are shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite, nan
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.arm import Cohort, axis_column
from analysis.copy_bins import ALL

TUNE_AUC = "tune_auc"
"""AUC on the `tune` rows, by which the best detector is chosen; reported is the one on `test`."""


class Key(NamedTuple):
    """What names one number within a cohort."""

    dataset: str
    detector: str
    selection: str
    copies: str
    variant: str
    metric: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the metrics table."""

    setting: str
    value: float
    low: float
    high: float
    n_members: int
    n_nonmembers: int
    n_seeds: int
    seed_low: float = nan
    """The lowest of the seeds' values; of two seeds this and the next are both."""
    seed_high: float = nan
    interval: str = ""
    """What the interval speaks of (`any seed`, `this model`), or `none: ` and why there is none."""
    chance_error: float = nan
    """Standard error of an AUC where whole groups are dealt to the sides at random; NaN of cells
    that no check looks at."""
    tune: float = nan
    """AUC of this detector's setting on the `tune` rows of the arm: what the best is chosen by."""

    @property
    def available(self) -> bool:
        """Whether there is a number with an interval."""
        return isfinite(self.value) and isfinite(self.low) and isfinite(self.high)

    def contains(self, value: float) -> bool:
        """Whether the interval contains `value`."""
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class CohortMetrics:
    """All metrics of one cohort."""

    cohort: Cohort
    cells: Mapping[Key, Cell]

    def get(
        self,
        detector: str,
        *,
        dataset: str = "all",
        selection: str = "default",
        copies: str = ALL,
        variant: str = ALL,
        metric: str = "auc",
    ) -> Cell | None:
        """Return one cell, or None where the table has none."""
        return self.cells.get(Key(dataset, detector, selection, copies, variant, metric))

    def values(self, part: str) -> list[str]:
        """Return the distinct values of one part of the keys, in order of the table."""
        at = Key._fields.index(part)
        return list(dict.fromkeys(key[at] for key in self.cells))


def split_by_cohort(metrics: pa.Table, axes: Sequence[str]) -> list[CohortMetrics]:
    """Split the metrics table into cohorts, in order of first appearance."""
    found: dict[Cohort, dict[Key, Cell]] = {}
    rows = [
        (Cohort(tuple((key, row[axis_column(key)]) for key in axes), row["model"]), row)
        for row in metrics.to_pylist()
    ]
    tune = {
        (cohort, row["detector"], row["selection"]): float(row["value"])
        for cohort, row in rows
        if row["metric"] == TUNE_AUC
    }
    for cohort, row in rows:
        if row["metric"] == TUNE_AUC:
            continue
        chosen_by = tune.get((cohort, row["detector"], row["selection"]), nan)
        cells = found.setdefault(cohort, {})
        cells[Key(*(row[name] for name in Key._fields))] = _cell(row, chosen_by)
    return [CohortMetrics(cohort=cohort, cells=cells) for cohort, cells in found.items()]


def contaminated_cohorts(tables: Iterable[CohortMetrics]) -> list[CohortMetrics]:
    """Return the cohorts whose model saw the members."""
    return [table for table in tables if table.cohort.model == "contaminated"]


def plain_cell(row: Mapping[str, Any]) -> Cell:
    """Return a row of another table as a number with its interval and what stands behind it."""
    names = ("value", "low", "high", "n_members", "n_nonmembers", "n_seeds")
    return Cell(setting=row.get("setting", ""), **{name: row[name] for name in names})


def _cell(row: Mapping[str, Any], tune: float) -> Cell:
    names = [field.name for field in fields(Cell) if field.name != "tune"]
    return Cell(**{name: row[name] for name in names}, tune=tune)
