"""Detection of the forget set: AUC, its distance from the retrained model's, PrivLeak, by dose.

Members are the forget set's rows of the split `test`, non-members the holdout, each detector at its
default setting: nothing is chosen on the rows that are reported. A difference is between two models
on the rows that both could score.

PrivLeak on MUSE's convention (Shi et al. 2024, `forget_holdout` counts the forget set as
the non-members), in per cent: 100 · (a_u - a_r) / a_r with a = 1 - AUC. Hence -100 is a forget set
that is separated from the holdout perfectly, 0 the retrained model, and above 0 more was forgotten
than there was to forget; no bound lies above, and a small a_r makes large numbers of small gaps.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from analysis.arm import MODEL_FREE
from analysis.copy_bins import CopiesCell
from analysis.intervals.bounds import (
    Interval,
    Scale,
    find_difference,
    find_relative_change,
)
from analysis.intervals.clustered import Clustered
from analysis.metrics import Floats
from analysis.unlearning.evidence import RETRAINED, Cohort, ModelKey
from analysis.unlearning.numbers import (
    Measure,
    Numbers,
    RowWriter,
    auc_part,
    clustered,
    gap_of,
    numbers_of,
    trend_part,
)
from analysis.unlearning.settings import MeasureSettings

Values = Sequence[Floats | None]
"""Of all rows, for each seed; None where a seed has no such model or detector."""


def write_auc_measures(writer: RowWriter, settings: MeasureSettings) -> None:
    """Add every measure that is made of AUCs."""
    cohort = writer.cohort
    for key in cohort.keys:
        for detector, setting in detectors_of(cohort, key).items():
            mine = scores_of(cohort, key, detector)
            measure = Measure(
                key=key, name="auc", detector=detector, setting=setting, expected=_there(mine)
            )
            writer.add_scaled(measure, auc_numbers(cohort, mine, writer.cells), Scale.AUC)
            theirs = scores_of(cohort, RETRAINED, detector)
            if key != RETRAINED and _there(theirs):
                against = replace(measure, name="auc_difference")
                _write_against(writer, against, (mine, theirs), settings)
        _write_conditions(writer, key)


def detectors_of(cohort: Cohort, key: ModelKey) -> dict[str, str]:
    """Return the detectors that scored a model in some seed, with their default setting.

    Those that never look at a model are left out: they say the same of all.
    """
    return {
        name: setting
        for models in cohort.models
        if key in models
        for name, setting in models[key].settings.items()
        if name not in MODEL_FREE
    }


def scores_of(
    cohort: Cohort, key: ModelKey, detector: str, condition: str | None = None
) -> list[Floats | None]:
    """Return a detector's scores of a model, by seed."""
    found: list[Floats | None] = []
    for models in cohort.models:
        model = models.get(key)
        table = {} if model is None else model.scores
        if model is not None and condition is not None:
            table = model.conditions.get(condition, {})
        found.append(table.get(detector))
    return found


def auc_numbers(cohort: Cohort, values: Values, cells: Sequence[CopiesCell]) -> Numbers:
    """Return the AUCs of one model, by seed and dataset."""
    return numbers_of(
        cohort.rows,
        values,
        lambda _rows: cohort.datasets,
        lambda scores, rows, dataset: auc_part(
            scores, rows, dataset, cells, cohort.n_groups[dataset]
        ),
    )


def on_shared_rows(*several: Values) -> list[list[Floats | None]]:
    """Return the values of several models where all of them have one, seed by seed."""
    by_seed: list[list[Floats | None]] = []
    for values in zip(*several, strict=True):
        there = [one for one in values if one is not None]
        if len(there) < len(values):
            by_seed.append([None] * len(values))
            continue
        shared = np.isfinite(np.stack(there)).all(axis=0)
        by_seed.append([np.where(shared, one, np.nan) for one in there])
    return [list(one) for one in zip(*by_seed, strict=True)]


def _write_against(
    writer: RowWriter,
    measure: Measure,
    pair: tuple[Values, Values],
    settings: MeasureSettings,
) -> None:
    """Add what a model's AUC differs by from the retrained one's, PrivLeak, and the trend."""
    write_difference(writer, measure, pair)
    find = partial(privleak, settings=settings, confidence=writer.confidence)
    _compare(writer, replace(measure, name="privleak"), pair, find)
    residuals = [
        None if own is None or other is None else own - other
        for own, other in zip(*on_shared_rows(*pair), strict=True)
    ]
    write_trend(writer, replace(measure, name=f"{measure.name}_trend"), residuals)


def write_difference(writer: RowWriter, measure: Measure, pair: tuple[Values, Values]) -> None:
    """Add the difference of two AUCs on the rows that both models could score.

    Args:
        writer: takes the rows.
        measure: what it is called.
        pair: the scores of both, first minus second.
    """

    def find(gap: Clustered, one: Clustered, other: Clustered) -> tuple[Clustered, Interval]:
        return gap, find_difference(gap, one, other, confidence=writer.confidence)

    _compare(writer, measure, pair, find)


def _compare(
    writer: RowWriter,
    measure: Measure,
    pair: tuple[Values, Values],
    compare: Callable[[Clustered, Clustered, Clustered], tuple[Clustered, Interval]],
) -> None:
    """Add a function of the difference of two AUCs and of both."""
    one, other = (
        auc_numbers(writer.cohort, values, writer.cells) for values in on_shared_rows(*pair)
    )
    gap = gap_of(one, other)

    def find(dataset: str | None) -> tuple[Clustered, Interval] | None:
        found = [clustered(numbers, dataset) for numbers in (gap, one, other)]
        if found[0] is None or found[1] is None or found[2] is None:
            return None
        return compare(found[0], found[1], found[2])

    writer.add(measure, gap, find)


def privleak(
    gap: Clustered,
    one: Clustered,
    retrained: Clustered,
    *,
    settings: MeasureSettings,
    confidence: float,
) -> tuple[Clustered, Interval]:
    """Return PrivLeak in per cent with its interval; warns where the denominator is small.

    Args:
        gap: AUC less the retrained model's; their variances as they are correlated.
        one: the AUCs of the model.
        retrained: those of the retrained model.
        settings: what counts as small.
        confidence: coverage asked for.
    """
    mine, theirs = (found._replace(value=1 - found.value) for found in (one, retrained))
    interval = find_relative_change(gap, mine, theirs, confidence=confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = 100 * (mine.value - theirs.value) / theirs.value
    about = [
        f"{said}; its denominator is small: {below:.3f}"
        if below < settings.small_denominator
        else said
        for said, below in zip(interval.about, theirs.value.tolist(), strict=True)
    ]
    # Without a denominator there is no number.
    value = np.where(theirs.value > 0, value, np.nan)
    low, high = (np.where(np.isfinite(value), 100 * end, np.nan) for end in interval[:2])
    return gap._replace(value=value), Interval(low, high, about)


def write_trend(writer: RowWriter, measure: Measure, residuals: Values) -> None:
    """Add Somers' D of a difference between two models given copies: above 0, more copies leave
    more behind.

    Args:
        writer: takes the rows.
        measure: what it is called.
        residuals: of all rows, by seed.
    """
    cohort = writer.cohort
    numbers = numbers_of(
        cohort.rows,
        residuals,
        lambda _rows: cohort.datasets,
        lambda values, rows, dataset: trend_part(values, rows, dataset, cohort.n_groups[dataset]),
    )
    # With one number of copies there is no trend to speak of.
    if any(numbers):
        writer.add_scaled(measure, numbers, Scale.TREND)


def _write_conditions(writer: RowWriter, key: ModelKey) -> None:
    """Add the AUC under each condition, against the retrained model's and against none's."""
    cohort = writer.cohort
    conditions = dict.fromkeys(
        name for models in cohort.models if key in models for name in models[key].conditions
    )
    for condition in conditions:
        for detector in detectors_of(cohort, key):
            values = scores_of(cohort, key, detector, condition)
            measure = Measure(
                key=key,
                name="auc",
                detector=detector,
                setting=f"condition={condition}",
                expected=_there(values),
            )
            if not measure.expected:
                continue
            writer.add_scaled(measure, auc_numbers(cohort, values, writer.cells), Scale.AUC)
            plain = scores_of(cohort, key, detector)
            changed = replace(measure, name="auc_change")
            write_difference(writer, changed, (values, plain))
            theirs = scores_of(cohort, RETRAINED, detector, condition)
            if key != RETRAINED and _there(theirs):
                gap = replace(measure, name="auc_difference")
                write_difference(writer, gap, (values, theirs))


def _there(values: Values) -> int:
    return sum(one is not None for one in values)
