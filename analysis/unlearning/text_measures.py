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
from analysis.intervals.bounds import Scale, find_interval
from analysis.metrics import Floats
from analysis.unlearning.auc_measures import Values, on_shared_rows, write_trend
from analysis.unlearning.evidence import (
    ORIGINAL,
    RETRAINED,
    Cohort,
    LoadedModel,
    Mask,
    ModelKey,
    Rows,
)
from analysis.unlearning.numbers import (
    Measure,
    Numbers,
    Part,
    RowWriter,
    behind,
    clustered,
    gap_of,
    mean_part,
    mean_sample,
    numbers_of,
    warning_of,
)


@dataclass(frozen=True, kw_only=True)
class TextMeasure:
    """A mean over texts."""

    name: str
    read: Callable[[LoadedModel], Floats | None]
    """A model's values of all rows."""
    rows: Callable[[Rows], Mask]
    """Which rows count."""
    scale: Scale = Scale.SLOPE
    """`TPR` for shares, which keeps the ends inside of what is possible."""
    by_copies: bool = False
    """Whether each number of copies has a row, and the difference a trend."""
    setting: str = ""


def _text(name: str) -> Callable[[LoadedModel], Floats | None]:
    return lambda model: None if model.texts is None else model.texts[name]


def _forget(rows: Rows) -> Mask:
    return rows.forget


def _retain(rows: Rows) -> Mask:
    return rows.retain


def _holdout(rows: Rows) -> Mask:
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


def _accuracy(rows: Callable[[Rows], Mask], texts: str) -> TextMeasure:
    return TextMeasure(
        name="task_accuracy",
        read=lambda model: model.correct,
        rows=rows,
        scale=Scale.TPR,
        setting=f"texts={texts}",
    )


GENERAL = "general_log_probability"
_GENERAL_DATASET = "general"
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
    cohort: Cohort, values: Values, asked: TextMeasure, cells: Sequence[CopiesCell]
) -> Numbers:
    """Return the means of one model, by seed and dataset."""
    return numbers_of(
        cohort.rows,
        values,
        lambda rows: list(dict.fromkeys(rows.dataset[asked.rows(rows)].tolist())),
        lambda own, rows, dataset: mean_part(
            own, rows, asked.rows(rows), dataset, cells, cohort.n_groups[dataset]
        ),
    )


def _write(writer: RowWriter, asked: TextMeasure, key: ModelKey, mine: Values) -> None:
    cohort = writer.cohort
    cells = writer.cells if asked.by_copies else [EVERY_MEMBER]
    expected = sum(one is not None for one in mine)
    measure = Measure(key=key, name=asked.name, setting=asked.setting, expected=expected)
    writer.add_scaled(measure, text_numbers(cohort, mine, asked, cells), asked.scale)
    for reference in references_of(key):
        theirs = values_of(cohort, reference, asked)
        if all(one is None for one in theirs):
            continue
        one, other = on_shared_rows(mine, theirs)
        gap = gap_of(
            text_numbers(cohort, one, asked, cells), text_numbers(cohort, other, asked, cells)
        )
        versus = f"versus={reference.model}"
        named = Measure(
            key=key,
            name=f"{asked.name}_difference",
            setting=f"{asked.setting}:{versus}" if asked.setting else versus,
            expected=expected,
        )
        writer.add_scaled(named, gap, Scale.SLOPE)
        if asked.by_copies and reference == RETRAINED:
            trend = Measure(key=key, name=f"{named.name}_trend", setting=versus, expected=expected)
            residuals = [
                None if a is None or b is None else np.asarray(a - b, dtype=np.float64)
                for a, b in zip(one, other, strict=True)
            ]
            write_trend(writer, trend, residuals)


def write_general_measures(writer: RowWriter) -> None:
    """Add the mean log-probability of general text, of every model that has it."""
    cohort = writer.cohort
    for key in cohort.keys:
        if any(key in models and models[key].general is not None for models in cohort.models):
            numbers = general_numbers(cohort, [key])[0]
            _add_general(writer, Measure(key=key, name=GENERAL), numbers)
            for reference in references_of(key):
                mine, theirs = general_numbers(cohort, [key, reference])
                if any(theirs):
                    versus = Measure(
                        key=key, name=f"{GENERAL}_difference", setting=f"versus={reference.model}"
                    )
                    _add_general(writer, versus, gap_of(mine, theirs))


def general_numbers(cohort: Cohort, keys: Sequence[ModelKey]) -> list[Numbers]:
    """Return the means of models over the documents that all of them have a value for."""
    ids = sorted(
        {
            name
            for models in cohort.models
            for key in keys
            if key in models
            for name in (models[key].general or {})
        }
    )
    found: list[list[dict[str, Part]]] = [[] for _ in keys]
    for models in cohort.models:
        tables = [models[key].general if key in models else None for key in keys]
        there = [table for table in tables if table is not None]
        if len(there) < len(keys):
            for one in found:
                one.append({})
            continue
        values = np.array([[table.get(name, np.nan) for name in ids] for table in there])
        shared = np.isfinite(values).all(axis=0)
        for one, mine in zip(found, values, strict=True):
            one.append({_GENERAL_DATASET: _general_part(mine, shared)} if shared.any() else {})
    return list(found)


def _general_part(values: Floats, shared: np.typing.NDArray[np.bool_]) -> Part:
    documents = np.flatnonzero(shared)
    everyone = np.ones((1, len(documents)), dtype=bool)
    present = shared[None]
    return Part(
        sample=mean_sample(values[documents], documents, everyone, len(values)),
        weight=np.array([float(len(documents))]),
        forget=np.array([len(documents)]),
        holdout=0,
        left_out=int((~shared).sum()),
        present=present,
    )


def _add_general(writer: RowWriter, measure: Measure, numbers: Numbers) -> None:
    found = clustered(numbers, None)
    if found is None:
        writer.add_plain(measure, None, {"note": "no value"})
        return
    interval = find_interval(found, Scale.SLOPE, confidence=writer.confidence)
    documents = max(part.forget[0] for seed in numbers for part in seed.values())
    writer.add_plain(
        measure,
        None,
        {
            "value": float(found.value[0]),
            "low": float(interval.low[0]),
            "high": float(interval.high[0]),
            "groups": int(documents),
            "seeds": int(found.seeds[0]),
            "note": warning_of(interval.about[0]),
        },
    )


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


def _hidden_means(cohort: Cohort, values: Values) -> Numbers:
    return text_numbers(cohort, values, _HIDDEN, [EVERY_MEMBER])


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
        writer.add_scaled(measure, _hidden_means(cohort, values), Scale.SLOPE)
        if key != RETRAINED and step in retrained:
            mine, theirs = on_shared_rows(values, retrained[step])
            named = replace(
                measure,
                name=f"{RELEARNED}_difference",
                setting=f"{measure.setting}:versus={RETRAINED.model}",
            )
            gap = gap_of(_hidden_means(cohort, mine), _hidden_means(cohort, theirs))
            writer.add_scaled(named, gap, Scale.SLOPE)


def _write_steps(writer: RowWriter, key: ModelKey, of_step: Mapping[int, Values]) -> None:
    cohort = writer.cohort
    original = values_of(cohort, ORIGINAL, FORGET_LOG_PROBABILITY)
    gaps = {}
    for step, values in of_step.items():
        mine, theirs = on_shared_rows(values, original)
        gaps[step] = gap_of(_hidden_means(cohort, mine), _hidden_means(cohort, theirs))
    means = {step: clustered(gap, None) for step, gap in gaps.items()}
    steps = next(
        (step for step, mean in means.items() if mean is not None and mean.value[0] >= 0), nan
    )
    counted = behind(gaps[0], None)
    known = any(mean is not None for mean in means.values())
    late = f"not back after {max(gaps)} steps" if known else "no value"
    writer.add_plain(
        Measure(key=key, name="relearn_steps"),
        None,
        {
            "value": steps,
            "low": nan,
            "high": nan,
            "forget": int(counted.forget[0]),
            "groups": int(counted.groups[0]),
            "seeds": sum(bool(seed) for seed in gaps[0]),
            "note": "no interval: one of the steps looked at" if isfinite(steps) else late,
        },
    )
