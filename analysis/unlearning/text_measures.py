"""What the models say of the texts: memorised forget set, kept retain set, general text, answers.

Means over texts, by the influence of whole groups. Of each model its value, and its difference to
the retrained model and to the original (`setting`: `versus=retrained`, `versus=original`) on the
texts that both have a value for. The forget set counts whole here, tune rows and all, since nothing
was chosen on it; by dose, with Somers' D of the difference to the retrained model given copies.

General text, which no model was trained on, says what unlearning costs beyond the retain set. Each
text is a document, and a group of its own; the same documents serve all seeds, so a document is one
group in all of them, and the column `groups` counts documents.

A model that learns half of the forget set again is looked at after some steps on the other half:
the mean log-probability of that half, its difference to the retrained model after as many steps
(what is above 0 there was still in the weights), and the first of those steps at which it is back
at the original's. That number has no interval: it is one of the few steps that were looked at.
Where the last step does not reach, there is no number, and the note says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np

from analysis.copy_bins import EVERY_MEMBER, CopiesCell
from analysis.intervals.ends import Scale
from analysis.intervals.numbers import Numbers, Rows, mean_numbers
from analysis.metrics import Floats
from analysis.unlearning import evidence
from analysis.unlearning.auc_measures import on_shared_rows, write_trend
from analysis.unlearning.evidence import (
    ORIGINAL,
    RETRAINED,
    Cohort,
    LoadedModel,
    Mask,
    ModelKey,
    Values,
)
from analysis.unlearning.numbers import Measure, RowWriter


@dataclass(frozen=True, kw_only=True)
class TextMeasure:
    """A mean over texts."""

    name: str
    read: Callable[[LoadedModel], Floats | None]
    """A model's values of all rows."""
    rows: Callable[[evidence.Rows], Mask]
    """Which rows count."""
    scale: Scale = Scale.SLOPE
    """`TPR` for shares, which keeps the ends inside of what is possible."""
    by_copies: bool = False
    """Whether each number of copies has a row, and the difference a trend."""
    setting: str = ""


def _text(name: str) -> Callable[[LoadedModel], Floats | None]:
    return lambda model: None if model.texts is None else model.texts[name]


def _forget(rows: evidence.Rows) -> Mask:
    return rows.forget


def _retain(rows: evidence.Rows) -> Mask:
    return rows.retain


def _holdout(rows: evidence.Rows) -> Mask:
    return rows.holdout


FORGET_LOG_PROBABILITY = TextMeasure(
    name="forget_log_probability", read=_text("log_probability"), rows=_forget, by_copies=True
)
EXACT_MEMORISATION = TextMeasure(
    name="exact_memorisation",
    read=_text("exact_memorisation"),
    rows=_forget,
    scale=Scale.TPR,
    by_copies=True,
)
EXTRACTION_STRENGTH = TextMeasure(
    name="extraction_strength",
    read=_text("extraction_strength"),
    rows=_forget,
    scale=Scale.TPR,
    by_copies=True,
)
RETAIN_LOG_PROBABILITY = TextMeasure(
    name="retain_log_probability", read=_text("log_probability"), rows=_retain
)


def _accuracy(rows: Callable[[evidence.Rows], Mask], texts: str) -> TextMeasure:
    return TextMeasure(
        name="task_accuracy",
        read=lambda model: model.correct,
        rows=rows,
        scale=Scale.TPR,
        setting=f"texts={texts}",
    )


GENERAL = "general_log_probability"
RETAIN_ACCURACY = _accuracy(_retain, "retain")
TEXT_MEASURES = (
    FORGET_LOG_PROBABILITY,
    EXACT_MEMORISATION,
    EXTRACTION_STRENGTH,
    RETAIN_LOG_PROBABILITY,
    RETAIN_ACCURACY,
    _accuracy(_forget, "forget"),
    _accuracy(_holdout, "holdout"),
)


def write_text_measures(writer: RowWriter) -> None:
    """Add every measure of texts, of every model that has it."""
    cohort = writer.cohort
    for asked in TEXT_MEASURES:
        for key in cohort.keys:
            mine = values_of(cohort, key, asked)
            if any(one is not None for one in mine):
                _write(writer, asked, key, mine)


def references_of(key: ModelKey) -> tuple[ModelKey, ...]:
    """Return what a model is compared with; no two models are compared twice."""
    if key == RETRAINED:
        return ()
    return (RETRAINED,) if key == ORIGINAL else (RETRAINED, ORIGINAL)


def values_of(cohort: Cohort, key: ModelKey, asked: TextMeasure) -> list[Floats | None]:
    """Return a model's values of all rows, by seed."""
    return [asked.read(models[key]) if key in models else None for models in cohort.models]


def text_numbers(
    cohort: Cohort,
    values: Floats,
    asked: TextMeasure,
    cells: Sequence[CopiesCell] = (EVERY_MEMBER,),
) -> Numbers:
    """Return the means of one model, by number of copies."""
    return mean_numbers(cohort.chosen(asked.rows), values, cohort.within(cells), scale=asked.scale)


def _write(writer: RowWriter, asked: TextMeasure, key: ModelKey, mine: Values) -> None:
    cohort = writer.cohort
    cells = writer.cells if asked.by_copies else [EVERY_MEMBER]
    expected = sum(one is not None for one in mine)
    measure = Measure(key=key, name=asked.name, setting=asked.setting, expected=expected)
    writer.add(measure, text_numbers(cohort, cohort.joined(mine), asked, cells))
    for reference in references_of(key):
        theirs = values_of(cohort, reference, asked)
        if all(one is None for one in theirs):
            continue
        one, other = on_shared_rows(cohort, mine, theirs)
        versus = f"versus={reference.model}"
        named = replace(
            measure,
            name=f"{asked.name}_difference",
            setting=f"{asked.setting}:{versus}" if asked.setting else versus,
        )
        gap = text_numbers(cohort, one, asked, cells) - text_numbers(cohort, other, asked, cells)
        writer.add(named, gap)
        if asked.by_copies and reference == RETRAINED:
            trend = replace(measure, name=f"{named.name}_trend", setting=versus)
            write_trend(writer, trend, one - other)


def write_general_measures(writer: RowWriter) -> None:
    """Add the mean log-probability of general text, of every model that has it."""
    cohort = writer.cohort
    for key in cohort.keys:
        if any(key in models and models[key].general is not None for models in cohort.models):
            _add_general(writer, Measure(key=key, name=GENERAL), general_numbers(cohort, [key])[0])
            for reference in references_of(key):
                mine, theirs = general_numbers(cohort, [key, reference])
                if any(theirs.seeds):
                    versus = Measure(
                        key=key, name=f"{GENERAL}_difference", setting=f"versus={reference.model}"
                    )
                    _add_general(writer, versus, mine - theirs)


def general_numbers(cohort: Cohort, keys: Sequence[ModelKey]) -> list[Numbers]:
    """Return the means of models over the documents that all of them have a value for."""
    tables = [
        [(models[key].general or {}) if key in models else {} for key in keys]
        for models in cohort.models
    ]
    ids = sorted({name for seed in tables for table in seed for name in table})
    values = np.array([[[table.get(name, nan) for name in ids] for table in seed]
                       for seed in tables]).reshape(len(tables), len(keys), len(ids))  # fmt: skip
    values = np.where(np.isfinite(values).all(axis=1, keepdims=True), values, nan)
    seed = np.repeat(np.arange(len(tables)), len(ids))
    rows = Rows.of(np.tile(np.arange(len(ids)), len(tables)), seed=seed)
    return [mean_numbers(rows, values[:, at].ravel()) for at in range(len(keys))]


def _add_general(writer: RowWriter, measure: Measure, numbers: Numbers) -> None:
    for found in numbers.estimates(confidence=writer.confidence):
        documents = max(int(p.weight[0]) for seed in numbers.seeds for p in seed.values())
        ends = {name: getattr(found, name) for name in ("value", "low", "high", "seeds", "note")}
        writer.add_plain(measure, None, {**ends, "groups": documents})
    if not any(numbers.seeds):
        writer.add_plain(measure, None, {"note": "no value"})


RELEARNED = "relearned_log_probability"


def write_relearning(writer: RowWriter) -> None:
    """Add what every model knows after some steps that was trained on the forget set again.

    That is the mean log-probability of the half that it was not trained on after each step, its
    difference to the retrained model's, and the steps until it is back.
    """
    retrained = _looked_at(writer.cohort, RETRAINED)
    for key in writer.cohort.keys:
        of_step = _looked_at(writer.cohort, key)
        if of_step:
            _write_relearned(writer, key, of_step, retrained)
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


def _write_relearned(
    writer: RowWriter,
    key: ModelKey,
    of_step: Mapping[int, Values],
    retrained: Mapping[int, Values],
) -> None:
    cohort = writer.cohort
    for step, values in of_step.items():
        measure = Measure(
            key=key,
            name=RELEARNED,
            setting=f"steps={step}",
            expected=sum(one is not None for one in values),
        )
        writer.add(measure, text_numbers(cohort, cohort.joined(values), _HIDDEN))
        if key != RETRAINED and step in retrained:
            named = replace(
                measure,
                name=f"{RELEARNED}_difference",
                setting=f"{measure.setting}:versus={RETRAINED.model}",
            )
            writer.add(named, _hidden_gap(cohort, values, retrained[step]))


def _hidden_gap(cohort: Cohort, mine: Values, theirs: Values) -> Numbers:
    one, other = on_shared_rows(cohort, mine, theirs)
    return text_numbers(cohort, one, _HIDDEN) - text_numbers(cohort, other, _HIDDEN)


def _write_steps(writer: RowWriter, key: ModelKey, of_step: Mapping[int, Values]) -> None:
    cohort = writer.cohort
    original = values_of(cohort, ORIGINAL, FORGET_LOG_PROBABILITY)
    gaps = {step: _hidden_gap(cohort, values, original) for step, values in of_step.items()}
    means = {step: gap.estimates(confidence=writer.confidence) for step, gap in gaps.items()}
    steps = next((step for step, found in means.items() if found and found[0].value >= 0), nan)
    late = f"not back after {max(gaps)} steps" if any(means.values()) else "no value"
    counts = {"forget": means[0][0].members, "groups": means[0][0].groups} if means[0] else {}
    writer.add_plain(
        Measure(key=key, name="relearn_steps"),
        None,
        {
            "value": steps,
            **counts,
            "seeds": sum(bool(seed) for seed in gaps[0].seeds),
            "note": "no interval: one of the steps looked at" if isfinite(steps) else late,
        },
    )
