"""Rows of the metrics and differences tables with the luck of the pool taken out.

For every AUC, trend and paired difference of a trained model for which the base model scored the
same rows; the raw numbers are in separate rows. `base_value` and `base_weight` give the correction:
adjusted = raw - base_weight * (base_value - 0.5), and without the 0.5 for a trend.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.arm import Arm, DetectorColumn, LoadedArm
from analysis.auc_cells import ColumnMetrics, PreparedCohort
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Floats
from analysis.intervals.numbers import Numbers
from analysis.metrics import AUC, POOLED, TREND
from analysis.settings import AnalysisSettings
from analysis.tables import Row, paired_gaps

ADJUSTED_AUC = "auc_adjusted"
"""An AUC less its share of what the base model's differs from 0.5 by on the same rows."""
ADJUSTED_TREND = "copies_trend_adjusted"


def find_base(arms: Iterable[Arm], arm: Arm, *, model: str = "base") -> Arm | None:
    """Return the base model, or the `twin`, of a trained one; None if there is none, or several."""
    bases = [
        base
        for base in arms
        if base.model == model
        and base.seed == arm.seed
        and all(not value or arm.axes.get(axis) == value for axis, value in base.axes.items())
    ]
    return bases[0] if len(bases) == 1 else None


class Adjusted(NamedTuple):
    """One column with the luck taken out, in one dataset or in all together."""

    auc: Numbers
    partners: Mapping[str, Sequence[tuple[str, Estimate, float, float]]]
    """By metric and number of copies: the name of the adjusted metric, its number, the base
    model's number on the same rows, and its weight."""


def base_scores(
    column: DetectorColumn, arms: Sequence[LoadedArm], bases: Sequence[LoadedArm | None]
) -> Floats | None:
    """Return the base models' scores of all rows of a column, NaN if there is none.

    None if a seed has no base model that was scored in this column.

    Args:
        column: detector and setting.
        arms: the trained models, one per seed.
        bases: the base model of each.
    """
    columns = []
    for arm, base in zip(arms, bases, strict=True):
        if base is None or column not in base.index:
            return None
        positions = {example.example_id: at for at, example in enumerate(base.examples)}
        places = np.array([positions.get(example.example_id, -1) for example in arm.examples])
        columns.append(np.where(places >= 0, base.scores[places, base.index[column]], np.nan))
    return np.concatenate(columns)


def adjust_column(
    raw: ColumnMetrics, base: Floats, dataset: str | None, settings: AnalysisSettings
) -> Adjusted | None:
    """Return a column less its share of the base model's luck; None without any AUC.

    Args:
        raw: the column under the trained models.
        base: the base models' scores of its rows.
        dataset: which; None for all together, which have a separate weight.
        settings: the confidence.
    """
    auc, base_auc = (numbers.of(dataset) for numbers in (raw.auc, raw.compared.aucs(base)))
    # Datasets without an AUC have no part in the trend either.
    own, others = (
        Numbers(
            [
                {name: part for name, part in parts.items() if name in seed}
                for seed, parts in zip(auc.seeds, numbers.seeds, strict=True)
            ],
            numbers.scale,
        )
        for numbers in (raw.trends, raw.compared.trends(base))
    )
    partners = _partners(ADJUSTED_AUC, auc, base_auc, 0.5, settings)
    if partners is None:
        return None
    trend = _partners(ADJUSTED_TREND, own, others, 0.0, settings)
    return Adjusted(partners[0], {AUC: partners[1], TREND: trend[1] if trend else ()})


def _partners(
    name: str, numbers: Numbers, base: Numbers, centre: float, settings: AnalysisSettings
) -> tuple[Numbers, list[tuple[str, Estimate, float, float]]] | None:
    """Return adjusted numbers, and the partner of each raw one; None without base numbers."""
    of_base = base.clustered()
    if of_base is None:
        return None
    adjusted, weights = numbers.adjusted(base, centre=centre)
    estimates = adjusted.estimates(confidence=settings.confidence)
    taken = zip(estimates, of_base.value.tolist(), weights.tolist(), strict=True)
    return adjusted, [(name, *each) for each in taken]


AdjustedColumns = Mapping[str, Mapping[DetectorColumn, Adjusted]]
"""By dataset, `all` included."""


def adjust_columns(
    work: PreparedCohort,
    measured: Mapping[DetectorColumn, ColumnMetrics],
    bases: Sequence[LoadedArm | None],
) -> AdjustedColumns:
    """Adjust every column whose rows the base models scored, for each dataset and for all."""
    by_dataset: dict[str | None, dict[DetectorColumn, Adjusted]] = {}
    names = {dataset: work.sample_name(dataset) for dataset in (POOLED, *work.datasets)}
    for column, raw in measured.items():
        scores = base_scores(column, work.loaded, bases)
        compared = raw.compared.rows.member | raw.compared.rows.nonmember
        if scores is None or not np.isfinite(scores[compared]).all():
            continue
        for name in dict.fromkeys(names.values()):
            if adjusted := adjust_column(raw, scores, name, work.settings):
                by_dataset.setdefault(name, {})[column] = adjusted
    return {dataset: by_dataset.get(name, {}) for dataset, name in names.items()}


def adjusted_metrics(
    work: PreparedCohort, adjusted: AdjustedColumns, raw: Iterable[Row]
) -> Iterator[Row]:
    """Yield the adjusted partners of metric rows, all variants together, in their order."""
    labels = [cell.label for cell in work.cells]
    for row in raw:
        adjustment = adjusted[row["dataset"]].get(DetectorColumn(row["detector"], row["setting"]))
        if not adjustment or not (partners := adjustment.partners.get(row["metric"])):
            continue
        metric, estimate, value, weight = partners[labels.index(row["copies"])]
        if np.isfinite(row["value"]) and np.isfinite(estimate.value):
            measures = estimate.measures()
            if row["interval"].startswith("none"):
                measures |= {name: row[name] for name in ("low", "high", "interval")}
            more = {"metric": metric, "base_value": value, "base_weight": weight}
            yield {**row, **measures, **more}


def adjusted_differences(
    work: PreparedCohort, adjusted: AdjustedColumns, raw: Iterable[Row]
) -> Iterator[Row]:
    """Yield the adjusted partners of paired differences, in their order."""
    labels = [cell.label for cell in work.cells]
    gaps: dict[str, Callable[[DetectorColumn, DetectorColumn], list[Estimate]]] = {}
    for row in raw:
        dataset, at = row["dataset"], labels.index(row["copies"])
        adjustments = adjusted[dataset]
        detector_column = DetectorColumn(row["detector"], row["setting"])
        other = DetectorColumn(row["versus"], row["versus_setting"])
        if detector_column not in adjustments or other not in adjustments:
            continue
        if dataset not in gaps:
            aucs = {column: own.auc for column, own in adjustments.items()}
            gaps[dataset] = paired_gaps(aucs, None, work.settings)
        (_, own_auc, *_), (_, other_auc, *_) = (
            adjustments[own].partners[AUC][at] for own in (detector_column, other)
        )
        value = own_auc.value - other_auc.value
        if np.isfinite(value):
            gap = gaps[dataset](detector_column, other)[at].around(value)
            yield {**row, **gap.measures(), "metric": ADJUSTED_AUC}
