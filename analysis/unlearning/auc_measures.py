"""Detection of the forget set: AUC, its distance from the retrained model's, PrivLeak, by dose.

Members are the forget set's rows of the split `test`, non-members the holdout, each detector at its
default setting: nothing is chosen on the rows that are reported. A difference is between two models
on the rows that both could score.

PrivLeak on MUSE's convention (Shi et al. 2024, `forget_holdout` counts the forget set as
the non-members), in per cent: 100 · (a_u - a_r) / a_r with a = 1 - AUC. Hence -100 is a forget set
that is separated from the holdout perfectly, 0 the retrained model, and above 0 more was forgotten
than there was to forget; no bound lies above, and a small a_r makes large numbers of small gaps.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from analysis.arm import MODEL_FREE
from analysis.copy_bins import CopiesCell
from analysis.intervals.ends import Interval, find_relative_change
from analysis.intervals.estimate import Estimate
from analysis.intervals.numbers import Numbers, auc_numbers, trend_numbers
from analysis.metrics import Floats
from analysis.unlearning.evidence import RETRAINED, Cohort, ModelKey, Values
from analysis.unlearning.numbers import Measure, RowWriter
from analysis.unlearning.settings import MeasureSettings


def write_auc_measures(writer: RowWriter, settings: MeasureSettings) -> None:
    """Add every measure that is made of AUCs."""
    cohort = writer.cohort
    for key in cohort.keys:
        for detector, setting in detectors_of(cohort, key).items():
            mine, measure = _write_auc(writer, key, detector, setting)
            theirs = scores_of(cohort, RETRAINED, detector)
            if key != RETRAINED and _there(theirs):
                against = replace(measure, name="auc_difference")
                _write_against(writer, against, (mine, theirs), settings)
        _write_conditions(writer, key)


def _write_auc(
    writer: RowWriter, key: ModelKey, detector: str, setting: str, condition: str | None = None
) -> tuple[Values, Measure]:
    """Add the AUC of a detector; return its scores, and what it is called."""
    values = scores_of(writer.cohort, key, detector, condition)
    measure = Measure(
        key=key, name="auc", detector=detector, setting=setting, expected=_there(values)
    )
    if measure.expected:
        writer.add(measure, cohort_aucs(writer.cohort, writer.cohort.joined(values), writer.cells))
    return values, measure


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


def cohort_aucs(cohort: Cohort, scores: Floats, cells: Sequence[CopiesCell]) -> Numbers:
    """Return the AUCs of the forget set of `test` against the holdout, by number of copies."""
    rows = cohort.chosen(lambda rows: rows.forget & rows.test, lambda rows: rows.holdout)
    return auc_numbers(rows, scores, cohort.within(cells))


def on_shared_rows(cohort: Cohort, *several: Values) -> list[Floats]:
    """Return the values of several models where all of them have one."""
    values = np.stack([cohort.joined(one) for one in several])
    return [*np.where(np.isfinite(values).all(axis=0), values, np.nan)]


def _write_against(
    writer: RowWriter, measure: Measure, pair: tuple[Values, Values], settings: MeasureSettings
) -> None:
    """Add what a model's AUC differs by from the retrained one's, PrivLeak, and the trend."""
    gap = write_difference(writer, measure, pair)
    find = partial(privleak, gap, settings=settings, confidence=writer.confidence)
    writer.add(replace(measure, name="privleak"), gap, find)
    one, other = on_shared_rows(writer.cohort, *pair)
    write_trend(writer, replace(measure, name=f"{measure.name}_trend"), one - other)


def write_difference(writer: RowWriter, measure: Measure, pair: tuple[Values, Values]) -> Numbers:
    """Add the difference of two AUCs on the rows that both models could score, and return it.

    Args:
        writer: takes the rows.
        measure: what it is called.
        pair: the scores of both, first minus second.
    """
    one, other = (
        cohort_aucs(writer.cohort, scores, writer.cells)
        for scores in on_shared_rows(writer.cohort, *pair)
    )
    writer.add(measure, one - other)
    return one - other


def privleak(
    gap: Numbers, dataset: str | None, *, settings: MeasureSettings, confidence: float
) -> list[Estimate]:
    """Return PrivLeak in per cent with its interval; warns where the denominator is small.

    Args:
        gap: AUC less the retrained model's.
        dataset: which; None for all together.
        settings: what counts as small.
        confidence: coverage asked for.
    """
    found = [numbers.clustered(dataset) for numbers in (gap, *(gap.parents or ()))]
    clusters = [one for one in found if one is not None]
    if len(clusters) < 3:
        return []
    mine, theirs = (one._replace(value=1 - one.value) for one in clusters[1:])
    interval = find_relative_change(clusters[0], mine, theirs, confidence=confidence)
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
    relative = clusters[0]._replace(value=value)
    return gap.described(relative, Interval(low, high, about), dataset)


def write_trend(writer: RowWriter, measure: Measure, residuals: Floats) -> None:
    """Add Somers' D of a difference between two models given copies: above 0, more copies leave
    more behind.

    Args:
        writer: takes the rows.
        measure: what it is called.
        residuals: of all rows.
    """
    cohort = writer.cohort
    numbers = trend_numbers(cohort.chosen(lambda rows: rows.forget), residuals, cohort.copies)
    # With one number of copies there is no trend to speak of.
    if any(numbers.seeds):
        writer.add(measure, numbers)


def _write_conditions(writer: RowWriter, key: ModelKey) -> None:
    """Add the AUC under each condition, against the retrained model's and against none's."""
    cohort = writer.cohort
    conditions = dict.fromkeys(
        name for models in cohort.models if key in models for name in models[key].conditions
    )
    for condition in conditions:
        for detector in detectors_of(cohort, key):
            setting = f"condition={condition}"
            values, measure = _write_auc(writer, key, detector, setting, condition)
            if not measure.expected:
                continue
            plain = scores_of(cohort, key, detector)
            write_difference(writer, replace(measure, name="auc_change"), (values, plain))
            theirs = scores_of(cohort, RETRAINED, detector, condition)
            if key != RETRAINED and _there(theirs):
                gap = replace(measure, name="auc_difference")
                write_difference(writer, gap, (values, theirs))


def _there(values: Values) -> int:
    return sum(one is not None for one in values)
