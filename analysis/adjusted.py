"""Rows of the metrics and differences tables with the luck of the pool taken out.

For every AUC, trend and paired difference of a trained model for which the base model scored the
same rows; the raw numbers stand beside them. `base_value` and `base_weight` say what was taken off:
adjusted = raw - base_weight * (base_value - 0.5), and without the 0.5 for a trend.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Arm, Column, LoadedArm, load_arm
from analysis.auc_cells import ArmRows, ColumnMetrics, compared_sides
from analysis.copy_bins import CopiesCell
from analysis.intervals.clustered import Part, cluster
from analysis.intervals.control_variate import adjust, control_weights
from analysis.intervals.influence import Sample
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings
from analysis.tables import AUC, POOLED, TREND, PreparedCohort
from analysis.uncertainty.column_intervals import (
    CellInterval,
    ColumnIntervals,
    column_intervals,
    difference_intervals,
)
from analysis.uncertainty.samples import (
    ColumnSample,
    DatasetRows,
    DatasetSample,
    alike,
    sample_dataset,
    stacked,
    weighted_parts,
)


class Adjusted(NamedTuple):
    """One column with the luck taken out, in one dataset or in all together."""

    sample: ColumnSample
    base_auc: Floats
    """Of the base model on the same rows, [cells]."""
    weight: Floats
    """Of its distance from 0.5 in the adjusted AUC, [cells]."""
    base_trend: float
    trend_weight: float


def base_samples(
    arms: Sequence[ArmRows],
    bases: Sequence[LoadedArm | None],
    samples: Mapping[Column, ColumnSample],
    cells: Sequence[CopiesCell],
    settings: AnalysisSettings,
) -> dict[Column, ColumnSample]:
    """Return what the base models' scores say of the rows of each column.

    Without the columns for which a seed has no base model, or one that has no score for a row that
    is compared.

    Args:
        arms: of the trained models, one a seed.
        bases: the base model of each.
        samples: the columns under the trained models.
        cells: numbers of copies.
        settings: of the analysis.
    """
    there = [base for base in bases if base is not None]
    if len(there) < len(bases):
        return {}
    scored = [column for column in samples if all(column in base.index for base in there)]
    seeds = [
        _of_one_seed(
            arm, base, {column: samples[column].seeds[s] for column in scored}, cells, settings
        )
        for s, (arm, base) in enumerate(zip(arms, there, strict=True))
    ]
    return {
        column: ColumnSample(tuple(seed[column] for seed in seeds))
        for column in scored
        if all(column in seed for seed in seeds)
    }


def _of_one_seed(
    arm: ArmRows,
    base: LoadedArm,
    raw: Mapping[Column, Mapping[str, DatasetSample]],
    cells: Sequence[CopiesCell],
    settings: AnalysisSettings,
) -> dict[Column, dict[str, DatasetSample]]:
    """Return what one base model says, of the columns whose compared rows it all scored.

    Args:
        arm: the trained model's.
        base: the base model.
        raw: what the trained model says, by column and dataset.
        cells: numbers of copies.
        settings: of the analysis.
    """
    scores = dict(zip(raw, _scores(arm, base, list(raw)), strict=True))
    batches: dict[tuple[str, Column | None, bool], list[Column]] = {}
    for column, datasets in raw.items():
        for name, one in datasets.items():
            own = column if column in arm.compared[name].own else None
            batches.setdefault((name, own, one.auc is not None), []).append(column)
    found: dict[Column, dict[str, DatasetSample]] = {column: {} for column in raw}
    for (name, _, comparable), columns in batches.items():
        rows = arm.compared[name].rows(columns[0])
        inside, outside = compared_sides(arm.loaded, rows, settings)
        whole = [one for one in columns if np.isfinite(scores[one][inside | outside]).all()]
        if whole:
            stack = np.stack([scores[one] for one in whole])
            sample = sample_dataset(
                DatasetRows(arm.loaded, arm.groups, name, inside, outside, stack),
                cells,
                (),
                total_nonmembers=0,
                comparable=comparable,
            )
            for at, column in enumerate(whole):
                found[column][name] = sample.column(at)
    # In the order of the trained model's datasets: both are read side by side.
    return {
        column: {name: found[column][name] for name in datasets}
        for column, datasets in raw.items()
        if found[column].keys() == datasets.keys()
    }


def adjusted_samples(
    samples: Mapping[Column, ColumnSample],
    bases: Mapping[Column, ColumnSample],
    dataset: str | None,
) -> dict[Column, Adjusted]:
    """Return columns less their share of the base model's luck; without those without any AUC.

    Args:
        samples: the columns.
        bases: what `base_samples` returned: of all of them, or of some.
        dataset: which; None for all together, which have a weight of their own.
    """
    columns = list(bases)
    raw, theirs = [samples[column] for column in columns], [bases[column] for column in columns]
    found: dict[Column, Adjusted] = {}
    for places in alike(raw, theirs):
        mine, others = ([many[at] for at in places] for many in (raw, theirs))
        for at, one in zip(places, _adjusted(mine, others, dataset), strict=False):
            found[columns[at]] = one
    return {column: found[column] for column in columns if column in found}


def _adjusted(
    samples: Sequence[ColumnSample], bases: Sequence[ColumnSample], dataset: str | None
) -> list[Adjusted]:
    """Return columns that are alike, adjusted; an empty list without any AUC."""
    many, theirs = stacked(samples), stacked(bases)
    aucs, base_aucs = (weighted_parts(one, "auc", dataset) for one in (many, theirs))
    if not any(aucs):
        return []
    weights = control_weights(aucs, base_aucs)
    values = _by_name(adjust(aucs, base_aucs, weights, centre=0.5))
    trends, base_trends = _trends(many, dataset), _trends(theirs, dataset)
    nothing = np.full(len(samples), np.nan)
    trend_weights, base_trend, moved = nothing, nothing, None
    if any(trends):
        trend_weights = control_weights(trends, base_trends)
        base_trend = cluster(base_trends).value
        moved = _by_name(adjust(trends, base_trends, trend_weights, centre=0.0))
    seeds = [
        {
            name: one._replace(
                auc=values[at][name],
                trend=moved[at].get(name, one.trend) if moved else one.trend,
                rates=(),
            )
            for name, one in seed.items()
            if name in values[at]
        }
        for at, seed in enumerate(many.seeds)
    ]
    base_value = cluster(base_aucs).value.reshape(len(samples), -1)
    return [
        Adjusted(
            ColumnSample(
                tuple({name: one.column(at) for name, one in seed.items()} for seed in seeds)
            ),
            base_value[at],
            weights.reshape(len(samples), -1)[at],
            float(base_trend[at]),
            float(trend_weights[at]),
        )
        for at in range(len(samples))
    ]


def _scores(arm: ArmRows, base: LoadedArm, columns: Sequence[Column]) -> Floats:
    """Return the base model's scores in the order of the arm's examples, [columns, n_examples]."""
    known = {example.example_id: at for at, example in enumerate(base.examples)}
    places = np.array([known.get(example.example_id, -1) for example in arm.loaded.examples])
    scores = base.scores[:, [base.index[column] for column in columns]].T[:, places]
    return np.where(places >= 0, scores, np.nan)


def _trends(sample: ColumnSample, dataset: str | None) -> list[dict[str, Part]]:
    """Return what datasets say of the trend, without those that have no AUC."""
    return [
        {name: part for name, part in parts.items() if seed[name].auc is not None}
        for seed, parts in zip(sample.seeds, weighted_parts(sample, "trend", dataset), strict=True)
    ]


def _by_name(seeds: Sequence[Mapping[str, Part]]) -> list[dict[str, Sample]]:
    return [{name: part.sample for name, part in parts.items()} for parts in seeds]


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
