"""How fast a model relearns what it forgot: optimiser steps until it knows the texts again.

A model is trained on one half of the forget set again, and looked at after some steps on the other
half. It has relearnt at the first of those steps at which the mean log-probability of that half is
back at the original's. A model that never knew the texts (the retrained one) can learn nothing of
the other half but its kind; one that only hides them brings them back.

The number has no interval: it is one of the few steps that were looked at. What is sure stands
beside it: the mean log-probability of that half after each step, and its difference to the
retrained model after as many, each with its interval; what is above 0 there was still in the
weights. Where the last step does not reach, there is no number, and the note says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import NamedTuple

from analysis.copy_bins import EVERY_MEMBER
from analysis.intervals.bounds import Scale
from analysis.unlearning.auc_measures import Values, on_shared_rows
from analysis.unlearning.evidence import ORIGINAL, RETRAINED, Cohort, ModelKey
from analysis.unlearning.numbers import Numbers, behind, clustered, gap_of
from analysis.unlearning.rows import Measure, RowWriter
from analysis.unlearning.text_measures import (
    FORGET_LOG_PROBABILITY,
    text_numbers,
    values_of,
)

NAME = "relearned_log_probability"


class Moment(NamedTuple):
    """What the model knows after so many steps."""

    step: int
    """0 for the model as it was unlearned."""
    gap: Numbers
    """Mean log-probability of the texts that are looked at, less the original's."""


def relearn_steps(moments: Sequence[Moment]) -> float:
    """Return at which of the steps that were looked at the texts are known again; NaN at none.

    Args:
        moments: by step, ascending.
    """
    for step, gap in moments:
        found = clustered(gap, None)
        if found is not None and found.value[0] >= 0:
            return step
    return nan


def write_relearning(writer: RowWriter) -> None:
    """Add what every model knows after some steps that was trained on the forget set again.

    That is the mean log-probability of the half that it was not trained on after each step, its
    difference to the retrained model's, and the steps until it is back.
    """
    retrained = _looked_at(writer.cohort, RETRAINED)
    for key in writer.cohort.keys:
        of_step = _looked_at(writer.cohort, key)
        if of_step:
            _write_means(writer, key, of_step, retrained)
            _write_steps(writer, key, of_step)


_HIDDEN = replace(FORGET_LOG_PROBABILITY, rows=lambda rows: rows.relearn)


def _looked_at(cohort: Cohort, key: ModelKey) -> dict[int, Values]:
    """Return a model's values by step, 0 for itself; empty where it was not trained again."""
    kept = [set(models[key].relearning) for models in cohort.models if key in models]
    steps = sorted(set.intersection(*kept)) if kept else []
    found: dict[int, Values] = {}
    for step in steps:
        found[step] = [
            models[key].relearning[step] if key in models else None for models in cohort.models
        ]
    return {0: values_of(cohort, key, FORGET_LOG_PROBABILITY), **found} if found else {}


def _means(cohort: Cohort, values: Values) -> Numbers:
    return text_numbers(cohort, values, _HIDDEN, [EVERY_MEMBER])


def _write_means(
    writer: RowWriter,
    key: ModelKey,
    of_step: Mapping[int, Values],
    retrained: Mapping[int, Values],
) -> None:
    cohort = writer.cohort
    for step, values in of_step.items():
        measure = Measure(
            key=key,
            name=NAME,
            setting=f"steps={step}",
            expected=sum(one is not None for one in values),
        )
        writer.add_scaled(measure, _means(cohort, values), Scale.SLOPE)
        if key != RETRAINED and step in retrained:
            mine, theirs = on_shared_rows(values, retrained[step])
            named = replace(
                measure,
                name=f"{NAME}_difference",
                setting=f"{measure.setting}:versus={RETRAINED.model}",
            )
            gap = gap_of(_means(cohort, mine), _means(cohort, theirs))
            writer.add_scaled(named, gap, Scale.SLOPE)


def _write_steps(writer: RowWriter, key: ModelKey, of_step: Mapping[int, Values]) -> None:
    cohort = writer.cohort
    original = values_of(cohort, ORIGINAL, FORGET_LOG_PROBABILITY)
    moments = []
    for step, values in of_step.items():
        mine, theirs = on_shared_rows(values, original)
        moments.append(Moment(step, gap_of(_means(cohort, mine), _means(cohort, theirs))))
    steps = relearn_steps(moments)
    counted = behind(moments[0].gap, None)
    known = any(clustered(gap, None) is not None for _, gap in moments)
    late = f"not back after {moments[-1].step} steps" if known else "no value"
    writer.add_plain(
        Measure(key=key, name="relearn_steps"),
        None,
        {
            "value": steps,
            "low": nan,
            "high": nan,
            "forget": int(counted.forget[0]),
            "groups": int(counted.groups[0]),
            "seeds": sum(bool(seed) for seed in moments[0].gap),
            "note": "no interval: one of the steps looked at" if isfinite(steps) else late,
        },
    )
