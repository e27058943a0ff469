"""Rows of the metrics and differences tables with the luck of the pool taken out.

For every AUC, trend and paired difference of a trained model for which the base model scored the
same rows; the raw numbers stand beside them. `base_value` and `base_weight` say what was taken off:
adjusted = raw - base_weight * (base_value - 0.5), and without the 0.5 for a trend.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from analysis.adjusted.columns import Adjusted, adjusted_samples, base_samples
from analysis.arm import Arm, Column, LoadedArm, load_arm
from analysis.auc_cells import ColumnMetrics
from analysis.tables import AUC, POOLED, TREND, PreparedCohort
from analysis.uncertainty.column_intervals import (
    CellInterval,
    ColumnIntervals,
    column_intervals,
    difference_intervals,
)

ADJUSTED_AUC = "auc_adjusted"
"""An AUC less its share of what the base model's differs from 0.5 by on the same rows."""
ADJUSTED_TREND = "copies_trend_adjusted"

Row = dict[str, Any]


class BaseModels:
    """The base models of an experiment, each read once."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        """Take note of them; nothing is read yet."""
        self._arms = [arm for arm in arms if arm.model == "base"]
        self._loaded: dict[str, LoadedArm] = {}

    def of(self, arm: Arm) -> LoadedArm | None:
        """Return the base model of a trained one; None where there is none, or several."""
        found = [
            base
            for base in self._arms
            if base.seed == arm.seed
            and all(not value or arm.axes.get(axis) == value for axis, value in base.axes.items())
        ]
        if len(found) != 1:
            return None
        key = str(found[0].scores)
        if key not in self._loaded:
            self._loaded[key] = load_arm(found[0])
        return self._loaded[key]


class AdjustedColumns:
    """The columns of one cohort, adjusted where the base model scored the same rows."""

    def __init__(
        self,
        work: PreparedCohort,
        measured: Mapping[Column, ColumnMetrics],
        bases: Sequence[LoadedArm | None],
    ) -> None:
        """Adjust every column, for each dataset and for all together."""
        self._work = work
        self._measured = measured
        self._found: dict[tuple[Column, str | None], Adjusted] = {}
        self._intervals: dict[tuple[Column, str | None], ColumnIntervals] = {}
        samples = {column: raw.sample for column, raw in measured.items()}
        base = base_samples(work.arms, bases, samples, work.cells, work.settings)
        for name in dict.fromkeys(work.sample_name(one) for one in (POOLED, *work.datasets)):
            found = adjusted_samples(samples, base, name)
            intervals = column_intervals(
                [one.sample for one in found.values()],
                name,
                cells=len(work.cells),
                rates=0,
                confidence=work.settings.confidence,
            )
            for (column, one), ends in zip(found.items(), intervals, strict=True):
                self._found[column, name] = one
                self._intervals[column, name] = ends

    def metric_rows(self, column: Column, raw: Iterable[Row]) -> Iterator[Row]:
        """Yield the adjusted partners of a column's rows, in their order.

        Args:
            column: the detector's setting.
            raw: its rows of one selection, all variants together.
        """
        labels = [cell.label for cell in self._work.cells]
        for dataset, rows in groupby(raw, key=lambda row: row["dataset"]):
            name = self._work.sample_name(dataset)
            found = self._found.get((column, name))
            if found is None:
                continue
            intervals = self._intervals[column, name]
            values, trend = found.sample.auc(name), found.sample.trend(name)
            for row in rows:
                at = labels.index(row["copies"])
                if row["metric"] == AUC and values is not None:
                    value, cell = float(values.value[at]), intervals.cells[0][at]
                    taken = (float(found.base_auc[at]), float(found.weight[at]))
                    metric = ADJUSTED_AUC
                elif row["metric"] == TREND and trend is not None:
                    value, cell = float(trend.value[0]), intervals.trend
                    taken, metric = (found.base_trend, found.trend_weight), ADJUSTED_TREND
                else:
                    continue
                if np.isfinite(row["value"]) and np.isfinite(value):
                    measures = cell.measures(value)
                    if row["interval"].startswith("none"):
                        measures |= {name: row[name] for name in ("low", "high", "interval")}
                    more = {"metric": metric, "base_value": taken[0], "base_weight": taken[1]}
                    yield {**row, **measures, **more}

    def difference_rows(self, raw: Sequence[Row]) -> Iterator[Row]:
        """Yield the adjusted partners of paired differences, in their order."""
        labels = [cell.label for cell in self._work.cells]

        shown = sorted({labels.index(row["copies"]) for row in raw})

        def place(row: Row) -> tuple[str, ...]:
            names = ("dataset", "copies", "reference", "versus", "versus_setting")
            return tuple(row[name] for name in names)

        parts: dict[tuple[str, ...], list[Row]] = {}
        for row in raw:
            parts.setdefault(place(row), []).append(row)
        known: dict[
            tuple[str | None, str, Column, tuple[Column, ...]], list[dict[int, CellInterval]]
        ] = {}
        for (dataset, copies, reference, *versus), rows in parts.items():
            other, name = Column(*versus), self._work.sample_name(dataset)
            best = self._found.get((other, name))
            there = [
                (row, found)
                for row in rows
                for found in (self._found.get((Column(row["detector"], row["setting"]), name)),)
                if found is not None
            ]
            if best is None or not there:
                continue
            at = labels.index(copies)
            columns = tuple(Column(row["detector"], row["setting"]) for row, _ in there)
            # Mostly each cell compares the same columns, so all cells are found together.
            key = (name, reference, other, columns)
            if key not in known:
                known[key] = difference_intervals(
                    [found.sample for _, found in there],
                    best.sample,
                    name,
                    confidence=self._work.settings.confidence,
                    wanted=shown,
                )
            theirs = best.sample.auc(name)
            for (row, found), band in zip(there, known[key], strict=True):
                mine = found.sample.auc(name)
                if mine is None or theirs is None:
                    continue
                gap = float(mine.value[at] - theirs.value[at])
                if np.isfinite(gap):
                    yield {**row, **band[at].measures(gap), "metric": ADJUSTED_AUC}
