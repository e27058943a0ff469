"""Rows of the metrics and differences tables with the luck of the pool taken out.

For every AUC, trend and paired difference of a trained model for which the base model scored the
same rows; the raw numbers stand beside them. `base_value` and `base_weight` say what was taken off:
adjusted = raw - base_weight * (base_value - 0.5), and without the 0.5 for a trend.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from analysis.adjusted.columns import Adjusted, adjusted_sample, base_sample
from analysis.arm import Arm, Column, LoadedArm, load_arm
from analysis.auc_cells import ColumnMetrics
from analysis.tables import AUC, POOLED, TREND, PreparedCohort
from analysis.uncertainty.column_intervals import column_intervals, difference_bands

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
        self._found: dict[tuple[Column, str], Adjusted] = {}
        for column, raw in measured.items():
            base = base_sample(work.arms, bases, column, work.cells, work.settings, raw.sample)
            if base is None:
                continue
            for dataset in (POOLED, *work.datasets):
                one = adjusted_sample(raw.sample, base, None if dataset == POOLED else dataset)
                if one is not None:
                    self._found[column, dataset] = one

    def metric_rows(self, column: Column, raw: Iterable[Row]) -> Iterator[Row]:
        """Yield the adjusted partners of a column's rows, in their order.

        Args:
            column: the detector's setting.
            raw: its rows of one selection, all variants together.
        """
        labels = [cell.label for cell in self._work.cells]
        for dataset, rows in groupby(raw, key=lambda row: row["dataset"]):
            found = self._found.get((column, dataset))
            if found is None:
                continue
            name = None if dataset == POOLED else dataset
            intervals = column_intervals(
                found.sample,
                name,
                cells=len(labels),
                rates=0,
                confidence=self._work.settings.confidence,
                adjusted=True,
            )
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

        def place(row: Row) -> tuple[str, ...]:
            names = ("dataset", "copies", "reference", "versus", "versus_setting")
            return tuple(row[name] for name in names)

        parts: dict[tuple[str, ...], list[Row]] = {}
        for row in raw:
            parts.setdefault(place(row), []).append(row)
        for (dataset, copies, reference, *versus), rows in parts.items():
            best = self._found.get((Column(*versus), dataset))
            there = [
                (row, found)
                for row in rows
                for found in (self._found.get((Column(row["detector"], row["setting"]), dataset)),)
                if found is not None
            ]
            if best is None or not there:
                continue
            name, at = None if dataset == POOLED else dataset, labels.index(copies)
            bands = difference_bands(
                [found.sample for _, found in there],
                best.sample,
                name,
                cells=len(labels),
                confidence=self._work.settings.confidence,
                together=reference == "best",
                wanted=[at],
            )
            other = best.sample.auc(name)
            for (row, found), band in zip(there, bands, strict=True):
                mine = found.sample.auc(name)
                if mine is None or other is None:
                    continue
                gap = float(mine.value[at] - other.value[at])
                if np.isfinite(gap):
                    yield {**row, **band[at].measures(gap), "metric": ADJUSTED_AUC}
