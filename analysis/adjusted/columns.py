"""Columns with the luck of the pool taken out, by the base model's scores on the same rows.

The base model saw no member, so what its AUC differs from 0.5 by is which rows became members: some
are easier for a detector than others, whoever trained on them. The trained model scores the same
rows. `adjusted_samples` gives columns less their share of that (`intervals.control_variate`); AUCs,
trends and differences follow from them as from the columns themselves. Cost: 20 ms for 25 columns
of 200 rows, found at once.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.arm import Column, LoadedArm
from analysis.auc_cells import ArmRows, compared_sides
from analysis.copy_bins import CopiesCell
from analysis.intervals.clustered import Weighted, cluster
from analysis.intervals.control_variate import adjust, control_weights
from analysis.intervals.influence import Sample
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings
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


def _trends(sample: ColumnSample, dataset: str | None) -> list[list[Weighted]]:
    """Return what datasets say of the trend, without those that have no AUC."""
    return [
        [part for part in parts if seed[part.dataset].auc is not None]
        for seed, parts in zip(sample.seeds, weighted_parts(sample, "trend", dataset), strict=True)
    ]


def _by_name(seeds: Sequence[Sequence[Weighted]]) -> list[dict[str, Sample]]:
    return [{part.dataset: part.sample for part in parts} for parts in seeds]
