"""Rows of the measures of unlearning: values, differences, trends, conditions, relearning.

PrivLeak on MUSE's convention (Shi et al. 2024, `forget_holdout` counts the forget set as
the non-members), in per cent: 100 · (a_u - a_r) / a_r with a = 1 - AUC. Hence -100 is a forget set
that is separated from the holdout perfectly, 0 the retrained model, and above 0 more was forgotten
than there was to forget. There is no upper bound: a small a_r turns small gaps into large numbers.

A model that learns half of the forget set again is looked at after some steps on the other half:
the mean log-probability of that half, its difference to the retrained model after as many steps
(what is above 0 there was still in the weights), and the first of those steps at which it is back
at the original's. That number has no interval: it is one of the few steps that were looked at.
If the last step does not reach, there is no number, and the note explains it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite, nan
from typing import Any

import numpy as np

from analysis.arm import axis_column
from analysis.copy_bins import ALL, CopiesCell
from analysis.intervals.ends import LEAST_GROUPS, Interval, find_relative_change
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import pack_groups
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import trend_numbers
from analysis.settings import MeasureSettings
from analysis.tables import POOLED
from analysis.unlearning import measures
from analysis.unlearning.evidence import ORIGINAL, RETRAINED, ModelKey, SeedCohort, Values
from analysis.unlearning.measures import Measure


@dataclass(kw_only=True)
class RowWriter:
    """Gathers the rows of one cohort."""

    cohort: SeedCohort
    cells: Sequence[CopiesCell]
    """Numbers of copies, the first of which is all of them."""
    settings: MeasureSettings
    confidence: float
    """Confidence level of every interval."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        key: ModelKey,
        measure: Measure,
        numbers: Numbers,
        *,
        expected: int = 1,
        find: Callable[[str | None], Sequence[Estimate]] | None = None,
    ) -> None:
        """Add a number of all datasets together and of each, of all copies and of each number.

        Numbers of copies with fewer than three groups get no row. A number of which there is
        nothing gets one, without a value.

        Args:
            key: of the model.
            measure: what it is called.
            numbers: one number a cell, or one for all.
            expected: seeds that have the models it is of.
            find: returns estimates of a dataset (None: all pooled); by default their own intervals.
        """
        find = find or partial(numbers.estimates, confidence=self.confidence)
        # A dataset without counted texts has no estimate; documents have no dataset.
        datasets = dict.fromkeys(name for seed in numbers.seeds for name in seed if name)
        for dataset in (None, *datasets):
            estimates = find(dataset)
            for cell, estimate in zip(self.cells, estimates, strict=False):
                if cell.label != ALL and estimate.groups < LEAST_GROUPS:
                    continue
                notes, counts = [estimate.note], {}
                if measure.member:
                    counts = {"forget": estimate.members, "holdout": estimate.nonmembers}
                    notes += _missing_notes(expected, estimate.seeds, numbers.left_out(dataset))
                note = "; ".join(filter(None, notes))
                values = {**number_columns(estimate), **counts, "note": note}
                self.add_plain(key, measure, dataset, values, copies=cell.label)
            if not estimates:
                self.add_plain(key, measure, dataset, {"note": "no value"})

    def add_plain(
        self,
        key: ModelKey,
        measure: Measure,
        dataset: str | None,
        values: Mapping[str, Any],
        *,
        copies: str = ALL,
    ) -> None:
        """Add a row that is found otherwise; what is not given is absent."""
        self.rows.append(
            {
                **{axis_column(key): value for key, value in self.cohort.axes.items()},
                "model": key.model,
                "method": key.method,
                "dataset": POOLED if dataset is None else dataset,
                "copies": copies,
                "measure": measure.name,
                "detector": measure.detector,
                "setting": measure.setting,
                **dict.fromkeys(("value", "low", "high"), nan),
                **dict.fromkeys(("forget", "holdout", "groups", "seeds"), 0),
                "note": "",
                **values,
            }
        )


def number_columns(estimate: Estimate) -> dict[str, float]:
    """Return the columns of a number, except its row counts and its note."""
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "groups", "seeds")}


def _missing_notes(expected: int, seeds: int, rows: int) -> list[str]:
    """Return the notes on missing values: of seeds, and of rows of the others."""
    lacking = expected - seeds
    return [
        f"{lacking} of {expected} seeds have no value" if lacking > 0 else "",
        f"{rows} {'row has' if rows == 1 else 'rows have'} no value" if rows else "",
    ]


def write_measures(writer: RowWriter) -> None:
    """Add every measure of every model that has it."""
    cohort = writer.cohort
    for key in cohort.keys:
        for measure in measures.auc_measures(cohort, key):
            write_measure(writer, key, measure)
        _write_conditions(writer, key)
    for measure in measures.TEXT_MEASURES:
        for key in cohort.keys:
            write_measure(writer, key, measure)


def write_measure(writer: RowWriter, key: ModelKey, measure: Measure) -> None:
    """Add a measure of a model, if it has it, and its differences to other models."""
    cohort = writer.cohort
    own_values = measure.values(cohort, key)
    if not (expected := measures.present_in(own_values)):
        return
    own = measure.numbers(cohort, own_values, cells=writer.cells)
    writer.add(key, measure, own[0], expected=expected)
    # No two models are compared twice.
    for reference in () if key == RETRAINED else measure.references:
        reference_values = measure.values(cohort, reference)
        if reference != key and measures.present_in(reference_values):
            named = _difference(measure, reference)
            gap = _write_gap(writer, key, measure, (own_values, reference_values), named)
            if measure.trend and reference == RETRAINED:
                _write_trends(writer, key, measure, (own_values, reference_values), gap)


def _write_gap(
    writer: RowWriter, key: ModelKey, measure: Measure, pair: tuple[Values, Values], named: Measure
) -> Numbers:
    """Add what the first values' measure differs by from the second's, and return it."""
    own_numbers, reference_numbers = measure.numbers(writer.cohort, *pair, cells=writer.cells)
    writer.add(key, named, own_numbers - reference_numbers, expected=measures.present_in(pair[0]))
    return own_numbers - reference_numbers


def _difference(measure: Measure, reference: ModelKey) -> Measure:
    """Return the name of the difference to another model."""
    setting = measure.setting
    if not measure.nonmember:
        setting = ":".join(filter(None, (setting, f"versus={reference.model}")))
    return replace(measure, name=f"{measure.name}_difference", setting=setting)


def _write_trends(
    writer: RowWriter, key: ModelKey, measure: Measure, pair: tuple[Values, Values], gap: Numbers
) -> None:
    """Add PrivLeak of an AUC, and Somers' D of a difference to the retrained model given copies:
    above 0, more copies leave more behind.
    """
    cohort, expected = writer.cohort, measures.present_in(pair[0])
    named = _difference(measure, RETRAINED)
    if measure.nonmember:
        find = partial(privleak, gap, settings=writer.settings, confidence=writer.confidence)
        writer.add(key, replace(named, name="privleak"), gap, expected=expected, find=find)
    own_values, reference_values = measure.shared(cohort, *pair)
    numbers = trend_numbers(cohort.chosen("forget"), own_values - reference_values, cohort.copies)
    # With one number of copies there is no trend.
    if any(numbers.seeds):
        trend = replace(named, name=f"{named.name}_trend")
        writer.add(key, trend, numbers, expected=expected)


def _write_conditions(writer: RowWriter, key: ModelKey) -> None:
    """Add the AUC under each condition, against the retrained model's and against none's."""
    cohort = writer.cohort
    kinds = (name[0] for models in cohort.models if key in models for name in models[key].values)
    conditions = dict.fromkeys(kind for kind in kinds if kind.startswith("condition "))
    for condition in (kind.removeprefix("condition ") for kind in conditions):
        for plain in measures.auc_measures(cohort, key):
            measure = measures.auc_measure(plain.detector, condition=condition)
            values = measure.values(cohort, key)
            if measures.present_in(values):
                write_measure(writer, key, measure)
                pair = values, plain.values(cohort, key)
                _write_gap(writer, key, measure, pair, replace(measure, name="auc_change"))


def write_forget_quality(writer: RowWriter) -> None:
    """Add KS distance and p-value of every model against the retrained one."""
    for key in writer.cohort.keys:
        if key != RETRAINED:
            for dataset in (None, *writer.cohort.datasets):
                _write_quality(writer, key, dataset)


def _write_quality(writer: RowWriter, key: ModelKey, dataset: str | None) -> None:
    cohort, measure = writer.cohort, measures.FORGET_LOG_PROBABILITY
    pair = [measure.values(cohort, model_key) for model_key in (key, RETRAINED)]
    if not all(map(measures.present_in, pair)):
        return
    distance, p_value = replace(measure, name="ks_distance"), replace(measure, name="ks_p")
    own_values, reference_values = measure.shared(cohort, *pair)
    rows = measure.rows(cohort)
    chosen = rows.member & np.isfinite(own_values)
    if dataset is not None:
        chosen &= rows.dataset == dataset
    if not chosen.any():
        for named in (distance, p_value):
            writer.add_plain(key, named, dataset, {"note": "no value"})
        return
    groups = [f"{d}\0{g}" for d, g in zip(rows.dataset[chosen], rows.group[chosen], strict=True)]
    estimate, chance = measures.forget_quality(
        own_values[chosen],
        reference_values[chosen],
        pack_groups(groups)[0],
        permutations=writer.settings.permutations,
        confidence=writer.confidence,
    )
    seeds = sum(all(own is not None for own in seed) for seed in zip(*pair, strict=True))
    estimate = estimate._replace(seeds=seeds)
    values = {**number_columns(estimate), "forget": estimate.members, "note": estimate.note}
    writer.add_plain(key, distance, dataset, values)
    writer.add_plain(key, p_value, dataset, {**values, "value": chance, "low": nan, "high": nan})


def privleak(
    gap: Numbers, dataset: str | None, *, settings: MeasureSettings, confidence: float
) -> list[Estimate]:
    """Return PrivLeak in per cent with its interval; warns if the denominator is small.

    Args:
        gap: AUC less the retrained model's.
        dataset: which; None for all together.
        settings: what counts as small.
        confidence: requested coverage.
    """
    sides = [numbers.clustered(dataset) for numbers in (gap, *(gap.parents or ()))]
    clusters = [side for side in sides if side is not None]
    if len(clusters) < 3:
        return []
    own_share, reference_share = (side._replace(value=1 - side.value) for side in clusters[1:])
    interval = find_relative_change(clusters[0], own_share, reference_share, confidence=confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = 100 * (own_share.value - reference_share.value) / reference_share.value
    about = [
        f"{basis}; its denominator is small: {below:.3f}"
        if below < settings.small_denominator
        else basis
        for basis, below in zip(interval.about, reference_share.value.tolist(), strict=True)
    ]
    # Without a denominator there is no number.
    value = np.where(reference_share.value > 0, value, np.nan)
    low, high = (np.where(np.isfinite(value), 100 * end, np.nan) for end in interval[:2])
    relative = clusters[0]._replace(value=value)
    return gap.described(relative, Interval(low, high, about), dataset)


def write_relearning(writer: RowWriter) -> None:
    """Add what every model knows after some steps that was trained on the forget set again.

    That is the mean log-probability of the half that it was not trained on after each step, its
    difference to the retrained model's, and the steps until it is back.
    """
    cohort = writer.cohort
    for key in cohort.keys:
        steps_by_seed = [
            {int(name[1]) for name in models[key].values if name[0] == "relearned"}
            for models in cohort.models
            if key in models
        ]
        if steps := sorted(set.intersection(*steps_by_seed)):
            by_step = {step: measures.relearned_measure(step) for step in (0, *steps)}
            for measure in by_step.values():
                write_measure(writer, key, measure)
            _write_steps(writer, key, by_step)


def _write_steps(writer: RowWriter, key: ModelKey, by_step: Mapping[int, Measure]) -> None:
    """Add the first of the steps at which a model is back at the original's log-probability."""
    cohort = writer.cohort
    original = by_step[0].values(cohort, ORIGINAL)
    pairs = {
        step: measure.numbers(cohort, measure.values(cohort, key), original)
        for step, measure in by_step.items()
    }
    gaps = {step: own - reference for step, (own, reference) in pairs.items()}
    means = {step: gap.estimates(confidence=writer.confidence) for step, gap in gaps.items()}
    steps = next((step for step, mean in means.items() if mean and mean[0].value >= 0), nan)
    late = f"not back after {max(gaps)} steps" if any(means.values()) else "no value"
    counts = {"forget": means[0][0].members, "groups": means[0][0].groups} if means[0] else {}
    writer.add_plain(
        key,
        replace(by_step[0], name="relearn_steps", setting=""),
        None,
        {
            "value": steps,
            **counts,
            "seeds": sum(bool(seed) for seed in gaps[0].seeds),
            "note": "no interval: one of the steps looked at" if isfinite(steps) else late,
        },
    )
