"""What the models say of the texts: memorised forget set, kept retain set, general text, answers.

Means over texts, by the influence of whole groups. Of each model its value, and its difference to
the retrained model and to the original (`setting`: `versus=retrained`, `versus=original`) on the
texts that both have a value for. The forget set counts whole here, tune rows and all, since nothing
was chosen on it; by dose, with Somers' D of the difference to the retrained model given copies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.copy_bins import EVERY_MEMBER, CopiesCell
from analysis.intervals.bounds import Interval, Scale, find_interval
from analysis.intervals.clustered import Clustered
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
from analysis.unlearning.numbers import Behind, Numbers, gap_of, mean_part
from analysis.unlearning.rows import Measure, RowWriter, found_by


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


def write_text_measures(writer: RowWriter, *, confidence: float) -> None:
    """Add every measure of texts, of every model that has it."""
    cohort = writer.cohort
    for asked in TEXT_MEASURES:
        for key in cohort.keys:
            mine = values_of(cohort, key, asked)
            if any(one is not None for one in mine):
                _write(writer, asked, key, mine, confidence)


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
    found = []
    for rows, of_seed in zip(cohort.rows, values, strict=True):
        parts = {}
        chosen = asked.rows(rows)
        for dataset in dict.fromkeys(rows.dataset[chosen].tolist()):
            if of_seed is not None:
                part = mean_part(of_seed, rows, chosen, dataset, cells, cohort.n_groups[dataset])
                if part is not None:
                    parts[dataset] = part
        found.append(parts)
    return found


def _write(
    writer: RowWriter, asked: TextMeasure, key: ModelKey, mine: Values, confidence: float
) -> None:
    cohort = writer.cohort
    cells = writer.cells if asked.by_copies else [EVERY_MEMBER]
    expected = sum(one is not None for one in mine)
    measure = Measure(key=key, name=asked.name, setting=asked.setting, expected=expected)
    write_means(writer, measure, text_numbers(cohort, mine, asked, cells), asked.scale, confidence)
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
        write_means(writer, named, gap, Scale.SLOPE, confidence)
        if asked.by_copies and reference == RETRAINED:
            trend = Measure(key=key, name=f"{named.name}_trend", setting=versus, expected=expected)
            residuals = [
                None if a is None or b is None else np.asarray(a - b, dtype=np.float64)
                for a, b in zip(one, other, strict=True)
            ]
            write_trend(writer, trend, residuals, confidence)


def write_means(
    writer: RowWriter, measure: Measure, numbers: Numbers, scale: Scale, confidence: float
) -> None:
    """Add means with their intervals.

    Args:
        writer: takes the rows.
        measure: what they are called.
        numbers: by seed and dataset.
        scale: of what kind they are.
        confidence: coverage asked for.
    """

    def find(dataset: str | None, _counted: Behind) -> tuple[Clustered, Interval] | None:
        return found_by(
            numbers, dataset, lambda found: find_interval(found, scale, confidence=confidence)
        )

    writer.add(measure, numbers, find)
