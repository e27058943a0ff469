"""What is measured of every model: a declared table of AUCs and means, and their differences.

Detection is the AUC of the forget set's rows of the split `test` against the holdout, each detector
at its default setting: nothing is chosen on the rows that are reported. The rest are means over
texts, by the influence of whole groups. The forget set counts whole there, tune rows and all; by
dose, with Somers' D of the difference to the retrained model given copies. Differences are between
two models on the rows that both have a value for: of AUCs to the retrained model, of means also to
the original (`setting`: `versus=retrained`, `versus=original`).

General text, which no model was trained on, says what unlearning costs beyond the retain set. Each
text is a document, and a group of its own; the same documents serve all seeds, so a document is one
group in all of them, and the column `groups` counts documents.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from analysis.arm import MODEL_FREE
from analysis.copy_bins import EVERY_MEMBER, CopiesCell
from analysis.intervals.ends import Scale
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, auc_numbers, mean_numbers
from analysis.metrics import Floats
from analysis.unlearning.evidence import (
    ORIGINAL,
    RETRAINED,
    Cohort,
    LoadedModel,
    Mask,
    ModelKey,
    RowChoice,
    Values,
)
from analysis.unlearning.evidence import Rows as SeedRows

NO_DETECTOR = "-"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number of a model: a mean over texts, or an AUC of some against others."""

    name: str
    read: Callable[[LoadedModel], Floats | None]
    """A model's values of all rows, or of all documents."""
    member: RowChoice | None
    """Which rows count; None: all documents of general text."""
    nonmember: RowChoice | None = None
    """Of an AUC: which rows they are held against."""
    scale: Scale = Scale.SLOPE
    """Of a mean; `TPR` for shares, which keeps the ends inside of what is possible."""
    by_copies: bool = False
    """Whether each number of copies has a row."""
    trend: bool = False
    """Whether the difference to the retrained model has a trend with copies."""
    references: tuple[ModelKey, ...] = (RETRAINED, ORIGINAL)
    """Which models others are compared with."""
    detector: str = NO_DETECTOR
    setting: str = ""

    def values(self, cohort: Cohort, key: ModelKey) -> list[Floats | None]:
        """Return a model's values, by seed."""
        return [self.read(models[key]) if key in models else None for models in cohort.models]

    def shared(self, cohort: Cohort, *several: Values) -> Floats:
        """Return values of several models, [models, n], NaN if one of them has none."""
        sizes = np.bincount(self.rows(cohort).seed).tolist()
        values = np.stack([_joined(sizes, of_model) for of_model in several])
        return np.where(np.isfinite(values).all(axis=0), values, nan)

    def rows(self, cohort: Cohort) -> Rows:
        """Return the rows that count, against the others."""
        if self.member is None:
            return cohort.documents
        return cohort.chosen(self.member, self.nonmember)

    def numbers(
        self, cohort: Cohort, *several: Values, cells: Sequence[CopiesCell] = (EVERY_MEMBER,)
    ) -> list[Numbers]:
        """Return the numbers of several models on the rows that all of them have a value for.

        Args:
            cohort: of the models.
            several: the values of each.
            cells: numbers of copies; a measure that is not taken by copies is of all.
        """
        rows, shared = self.rows(cohort), self.shared(cohort, *several)
        within = cohort.within(cells) if self.by_copies else None
        if self.nonmember is not None:
            return [auc_numbers(rows, values, within) for values in shared]
        return [mean_numbers(rows, values, within, scale=self.scale) for values in shared]

    def of(self, cohort: Cohort, keys: Sequence[ModelKey]) -> list[Numbers] | None:
        """Return the numbers of models, all copies together; None if one has no value."""
        several = [self.values(cohort, key) for key in keys]
        return self.numbers(cohort, *several) if all(map(present_in, several)) else None


def _joined(sizes: Sequence[int], values: Values) -> Floats:
    pairs = zip(sizes, values, strict=True)
    return np.concatenate([np.full(size, nan) if own is None else own for size, own in pairs])


def present_in(values: Values) -> int:
    """Return how many seeds have values."""
    return sum(of_seed is not None for of_seed in values)


def forget_rows(rows: SeedRows) -> Mask:
    """Return which rows are of the forget set."""
    return rows.forget


def _retain(rows: SeedRows) -> Mask:
    return rows.retain


def _holdout(rows: SeedRows) -> Mask:
    return rows.holdout


def _text(name: str) -> Callable[[LoadedModel], Floats | None]:
    return lambda model: None if model.texts is None else model.texts[name]


def _accuracy(member: RowChoice, texts: str) -> Measure:
    return Measure(
        name="task_accuracy",
        read=lambda model: model.correct,
        member=member,
        scale=Scale.TPR,
        setting=f"texts={texts}",
    )


FORGET_LOG_PROBABILITY = Measure(
    name="forget_log_probability",
    read=_text("log_probability"),
    member=forget_rows,
    by_copies=True,
    trend=True,
)
EXACT_MEMORISATION, EXTRACTION_STRENGTH = (
    replace(FORGET_LOG_PROBABILITY, name=name, read=_text(name), scale=Scale.TPR)
    for name in ("exact_memorisation", "extraction_strength")
)
RETAIN_LOG_PROBABILITY = Measure(
    name="retain_log_probability", read=_text("log_probability"), member=_retain
)
GENERAL_LOG_PROBABILITY = Measure(
    name="general_log_probability", read=lambda model: model.general, member=None
)
RETAIN_ACCURACY = _accuracy(_retain, "retain")
TEXT_MEASURES = (
    FORGET_LOG_PROBABILITY,
    EXACT_MEMORISATION,
    EXTRACTION_STRENGTH,
    RETAIN_LOG_PROBABILITY,
    RETAIN_ACCURACY,
    _accuracy(forget_rows, "forget"),
    _accuracy(_holdout, "holdout"),
    GENERAL_LOG_PROBABILITY,
)
"""The means; AUCs depend on which detectors were run."""


def auc_measure(detector: str, setting: str = "", condition: str | None = None) -> Measure:
    """Return the AUC of a detector, or of its scores under a condition."""

    def read(model: LoadedModel) -> Floats | None:
        table = model.scores if condition is None else model.conditions.get(condition, {})
        return table.get(detector)

    return Measure(
        name="auc",
        read=read,
        member=lambda rows: rows.forget & rows.test,
        nonmember=_holdout,
        references=(RETRAINED,),
        by_copies=True,
        trend=condition is None,
        detector=detector,
        setting=setting if condition is None else f"condition={condition}",
    )


def auc_measures(cohort: Cohort, key: ModelKey) -> Iterator[Measure]:
    """Yield the AUCs of the detectors that scored a model in some seed.

    Those that never look at a model are left out: they say the same of all.
    """
    settings = {
        name: setting
        for models in cohort.models
        if key in models
        for name, setting in models[key].settings.items()
        if name not in MODEL_FREE
    }
    for detector, setting in settings.items():
        yield auc_measure(detector, setting)


def relearned_measure(step: int) -> Measure:
    """Return what a model knows of the hidden half after some steps on the other half."""

    def read(model: LoadedModel) -> Floats | None:
        return model.relearning.get(step) if step else FORGET_LOG_PROBABILITY.read(model)

    return replace(
        FORGET_LOG_PROBABILITY,
        name="relearned_log_probability",
        read=read,
        member=lambda rows: rows.relearn,
        references=(RETRAINED,),
        by_copies=False,
        trend=False,
        setting=f"steps={step}",
    )
