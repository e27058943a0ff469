"""Rows of the metrics and differences tables with the luck of the pool taken out.

For every AUC, trend and paired difference of a trained model for which the base model scored the
same rows; the raw numbers stand beside them. `base_value` and `base_weight` say what was taken off:
adjusted = raw - base_weight * (base_value - 0.5), and without the 0.5 for a trend.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Arm, Column, LoadedArm, load_arm
from analysis.auc_cells import ColumnMetrics
from analysis.intervals.estimate import Estimate
from analysis.intervals.numbers import Numbers
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings
from analysis.tables import AUC, POOLED, TREND, PreparedCohort, paired_gaps

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
        """Return the base model of a trained one; None if there is none, or several."""
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


class Adjusted(NamedTuple):
    """One column with the luck taken out, in one dataset or in all together."""

    auc: Numbers
    aucs: Sequence[Estimate]
    """By number of copies."""
    taken: Sequence[tuple[float, float]]
    """The base model's AUC on the same rows, and its weight, likewise."""
    trend: Sequence[Estimate]
    """One, or none."""
    trend_taken: tuple[float, float]


def base_scores(
    column: Column, arms: Sequence[LoadedArm], bases: Sequence[LoadedArm | None]
) -> Floats | None:
    """Return the base models' scores of all rows of a column, NaN if there is none.

    None if a seed has no base model that was scored in this column.

    Args:
        column: detector and setting.
        arms: the trained models, one a seed.
        bases: the base model of each.
    """
    found = []
    for arm, base in zip(arms, bases, strict=True):
        if base is None or column not in base.index:
            return None
        known = {example.example_id: at for at, example in enumerate(base.examples)}
        places = np.array([known.get(example.example_id, -1) for example in arm.examples])
        found.append(np.where(places >= 0, base.scores[places, base.index[column]], np.nan))
    return np.concatenate(found)


def adjust_column(
    raw: ColumnMetrics, base: Floats, dataset: str | None, settings: AnalysisSettings
) -> Adjusted | None:
    """Return a column less its share of the base model's luck; None without any AUC.

    Args:
        raw: the column under the trained models.
        base: the base models' scores of its rows.
        dataset: which; None for all together, which have a weight of their own.
        settings: the confidence.
    """
    level, auc = settings.confidence, raw.auc.of(dataset)
    base_auc = raw.compared.aucs(base).of(dataset)
    values = base_auc.clustered()
    if values is None:
        return None
    aucs, weights = auc.adjusted(base_auc, centre=0.5)
    # Datasets without an AUC have no part in the trend either.
    own, others = (
        Numbers(
            [
                {name: part for name, part in trends.items() if name in seed}
                for seed, trends in zip(auc.seeds, numbers.seeds, strict=True)
            ],
            numbers.scale,
        )
        for numbers in (raw.trends, raw.compared.trends(base))
    )
    trend, taken = [], (np.nan, np.nan)
    base_trend = others.clustered()
    if base_trend is not None:
        adjusted, weight = own.adjusted(others, centre=0.0)
        trend = adjusted.estimates(confidence=level)
        taken = float(base_trend.value[0]), float(weight[0])
    return Adjusted(
        aucs,
        aucs.estimates(confidence=level),
        list(zip(values.value.tolist(), weights.tolist(), strict=True)),
        trend,
        taken,
    )


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
        self._found: dict[str | None, dict[Column, Adjusted]] = {}
        names = dict.fromkeys(work.sample_name(one) for one in (POOLED, *work.datasets))
        for column, raw in measured.items():
            scores = base_scores(column, [arm.loaded for arm in work.arms], bases)
            compared = raw.compared.rows.member | raw.compared.rows.nonmember
            if scores is None or not np.isfinite(scores[compared]).all():
                continue
            for name in names:
                found = adjust_column(raw, scores, name, work.settings)
                if found is not None:
                    self._found.setdefault(name, {})[column] = found

    def metric_rows(self, column: Column, raw: Iterable[Row]) -> Iterator[Row]:
        """Yield the adjusted partners of a column's rows, in their order.

        Args:
            column: the detector's setting.
            raw: its rows of one selection, all variants together.
        """
        labels = [cell.label for cell in self._work.cells]
        for dataset, rows in groupby(raw, key=lambda row: row["dataset"]):
            found = self._of(dataset).get(column)
            if found is None:
                continue
            for row in rows:
                at = labels.index(row["copies"])
                if row["metric"] == AUC:
                    metric, estimate, taken = ADJUSTED_AUC, found.aucs[at], found.taken[at]
                elif row["metric"] == TREND and found.trend:
                    metric, estimate, taken = ADJUSTED_TREND, found.trend[0], found.trend_taken
                else:
                    continue
                if np.isfinite(row["value"]) and np.isfinite(estimate.value):
                    measures = estimate.measures()
                    if row["interval"].startswith("none"):
                        measures |= {name: row[name] for name in ("low", "high", "interval")}
                    more = {"metric": metric, "base_value": taken[0], "base_weight": taken[1]}
                    yield {**row, **measures, **more}

    def difference_rows(self, raw: Sequence[Row]) -> Iterator[Row]:
        """Yield the adjusted partners of paired differences, in their order."""
        labels = [cell.label for cell in self._work.cells]
        gaps: dict[str, Callable[[Column, Column], list[Estimate]]] = {}
        # The list grows by these rows while they are read.
        for row in [*raw]:
            dataset, at = row["dataset"], labels.index(row["copies"])
            found = self._of(dataset)
            one = Column(row["detector"], row["setting"])
            other = Column(row["versus"], row["versus_setting"])
            if one not in found or other not in found:
                continue
            if dataset not in gaps:
                aucs = {column: adjusted.auc for column, adjusted in found.items()}
                gaps[dataset] = paired_gaps(aucs, None, self._work.settings)
            value = found[one].aucs[at].value - found[other].aucs[at].value
            if np.isfinite(value):
                gap = gaps[dataset](one, other)[at].around(value)
                yield {**row, **gap.measures(), "metric": ADJUSTED_AUC}

    def _of(self, dataset: str) -> Mapping[Column, Adjusted]:
        return self._found.get(self._work.sample_name(dataset), {})
