"""The measures of every model: a declared table of AUCs and means, and their differences.

Detection is the AUC of the forget set's rows of the split `test` against the holdout, each detector
at its default setting: nothing is chosen on the rows that are reported. The rest are means over
texts, by the influence of whole groups. The forget set counts whole there, tuning rows and all; by
dose, with Somers' D of the difference to the retrained model given copies. Differences are between
two models on the rows that both have a value for: of AUCs to the retrained model, of means also to
the original (`setting`: `versus=retrained`, `versus=original`).

General text, which no model was trained on, measures the cost beyond the retain set. Each
text is a document, and a group of its own; the same documents serve all seeds, so a document is one
group in all of them, and the column `groups` counts documents.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from analysis.arm import MODEL_FREE
from analysis.copy_bins import EVERY_MEMBER, CopiesCell
from analysis.intervals.ends import LEAST_GROUPS, IntervalMethod
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Counts, Floats
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, auc_numbers, mean_numbers
from analysis.unlearning.evidence import (
    CORRECT,
    GENERAL,
    ORIGINAL,
    RETRAINED,
    ModelKey,
    Name,
    SeedCohort,
    Values,
)
from inject.keyed import Stream, generator, item_key

NO_DETECTOR = "-"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number of a model: a mean over texts, or an AUC of some against others."""

    name: str
    read: Name
    """Which of a model's values (`LoadedModel`)."""
    member: str = ""
    """Which rows count, by the names of `SeedCohort.masks`; empty: all of the general text."""
    nonmember: str = ""
    """Of an AUC: the rows that they are compared with."""
    scale: IntervalMethod = IntervalMethod.SLOPE
    """Of a mean; `TPR` for shares, which keeps the ends inside of what is possible."""
    by_copies: bool = False
    """Whether each number of copies has a row."""
    trend: bool = False
    """Whether the difference to the retrained model has a trend with copies."""
    references: tuple[ModelKey, ...] = (RETRAINED, ORIGINAL)
    """Which models others are compared with."""
    detector: str = NO_DETECTOR
    setting: str = ""

    def values(self, cohort: SeedCohort, key: ModelKey) -> list[Floats | None]:
        """Return a model's values, by seed."""
        return cohort.values(key, self.read)

    def shared(self, cohort: SeedCohort, *several: Values) -> Floats:
        """Return values of several models, [models, n], NaN if one of them has none."""
        sizes = np.bincount(self.rows(cohort).seed).tolist()
        values = np.stack([_join_seeds(sizes, of_model) for of_model in several])
        return np.where(np.isfinite(values).all(axis=0), values, nan)

    def rows(self, cohort: SeedCohort) -> Rows:
        """Return the rows that count, against the others."""
        return cohort.chosen(self.member, self.nonmember) if self.member else cohort.documents()

    def numbers(
        self, cohort: SeedCohort, *several: Values, cells: Sequence[CopiesCell] = (EVERY_MEMBER,)
    ) -> list[Numbers]:
        """Return the numbers of several models on the rows that all of them have a value for.

        Args:
            cohort: of the models.
            several: the values of each.
            cells: numbers of copies; a measure that is not taken by copies is of all.
        """
        rows, shared = self.rows(cohort), self.shared(cohort, *several)
        within = cohort.within(cells) if self.by_copies else None
        if self.nonmember:
            return [auc_numbers(rows, values, within) for values in shared]
        return [mean_numbers(rows, values, within, scale=self.scale) for values in shared]

    def of(self, cohort: SeedCohort, keys: Sequence[ModelKey]) -> list[Numbers] | None:
        """Return the numbers of models, all copies together; None if one has no value."""
        several = [self.values(cohort, key) for key in keys]
        return self.numbers(cohort, *several) if all(map(present_in, several)) else None


def _join_seeds(sizes: Sequence[int], values: Values) -> Floats:
    pairs = zip(sizes, values, strict=True)
    return np.concatenate([np.full(size, nan) if own is None else own for size, own in pairs])


def present_in(values: Values) -> int:
    """Return the number of seeds with values."""
    return sum(of_seed is not None for of_seed in values)


FORGET_LOG_PROBABILITY = Measure(
    name="forget_log_probability",
    read=("text", "log_probability"),
    member="forget",
    by_copies=True,
    trend=True,
)
EXACT_MEMORISATION, EXTRACTION_STRENGTH = (
    replace(FORGET_LOG_PROBABILITY, name=name, read=("text", name), scale=IntervalMethod.TPR)
    for name in ("exact_memorisation", "extraction_strength")
)
RETAIN_LOG_PROBABILITY = Measure(
    name="retain_log_probability", read=("text", "log_probability"), member="retain"
)
GENERAL_LOG_PROBABILITY = Measure(name="general_log_probability", read=GENERAL)
RETAIN_ACCURACY, FORGET_ACCURACY, HOLDOUT_ACCURACY = (
    Measure(
        name="task_accuracy",
        read=CORRECT,
        member=member,
        scale=IntervalMethod.TPR,
        setting=f"texts={member}",
    )
    for member in ("retain", "forget", "holdout")
)
TEXT_MEASURES = (
    FORGET_LOG_PROBABILITY,
    EXACT_MEMORISATION,
    EXTRACTION_STRENGTH,
    RETAIN_LOG_PROBABILITY,
    RETAIN_ACCURACY,
    FORGET_ACCURACY,
    HOLDOUT_ACCURACY,
    GENERAL_LOG_PROBABILITY,
)
"""The means; AUCs depend on which detectors were run."""


def auc_measure(detector: str, setting: str = "", condition: str | None = None) -> Measure:
    """Return the AUC of a detector, or of its scores under a condition."""
    return Measure(
        name="auc",
        read=("score" if condition is None else f"condition {condition}", detector),
        member="detected",
        nonmember="holdout",
        references=(RETRAINED,),
        by_copies=True,
        trend=condition is None,
        detector=detector,
        setting=setting if condition is None else f"condition={condition}",
    )


def auc_measures(cohort: SeedCohort, key: ModelKey) -> Iterator[Measure]:
    """Yield the AUCs of the detectors that scored a model in some seed.

    Detectors that never query a model are left out: their scores are the same for all models.
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
    """Return the measure of the hidden half after some steps on the other half."""
    return replace(
        FORGET_LOG_PROBABILITY,
        name="relearned_log_probability",
        read=("relearned", str(step)) if step else FORGET_LOG_PROBABILITY.read,
        member="relearned",
        references=(RETRAINED,),
        by_copies=False,
        trend=False,
        setting=f"steps={step}",
    )


def forget_quality(
    first: Floats, second: Floats, groups: Counts, *, permutations: int, confidence: float
) -> tuple[Estimate, float]:
    """Compare the values of texts under two models.

    Args:
        first, second: finite, of the same texts, [n].
        groups: of each text, [n].
        permutations: number of swaps for the p-value, and of draws for the interval.
        confidence: requested coverage.

    Returns:
        The largest difference of the two distribution functions, in [0, 1], and the p-value of the
        hypothesis that the models are exchangeable; NaN with fewer than three groups.
    """
    names, group = np.unique(groups, return_inverse=True)
    steps = _steps(first, second, group, len(names))
    distance = float(np.abs(steps.sum(axis=0)).max(initial=0.0))
    if len(names) < LEAST_GROUPS:
        nothing = no_estimate(f"{len(names)} groups")
        estimate = nothing._replace(value=distance, members=len(first), groups=len(names))
        return estimate, nan
    random = generator(0, Stream.BOOTSTRAP, item_key(f"forget quality {len(names)}"))
    signs = random.choice(np.array([-1.0, 1.0]), size=(permutations, len(names)))
    swapped = np.abs(signs @ steps).max(axis=1)
    # Rounding must not break ties with the sample itself.
    p_value = (1 + int((swapped >= distance - 1e-12).sum())) / (1 + permutations)
    scale = np.sqrt(len(names) / (len(names) - 1))
    sizes = np.bincount(group, minlength=len(names))[:, None] / len(first)
    centred = scale * (steps - sizes * steps.sum(axis=0))
    weights = random.normal(size=(permutations, len(names)))
    band = float(np.quantile(np.abs(weights @ centred).max(axis=1), confidence))
    ends = max(distance - band, 0.0), min(distance + band, 1.0)
    estimate = Estimate(distance, *ends, members=len(first), groups=len(names))
    return estimate, p_value


def _steps(first: Floats, second: Floats, group: Counts, n_groups: int) -> Floats:
    """Return each group's contribution to the difference of the distribution functions.

    Returns:
        [n_groups, places]: at every value of either sample. Sums over groups are F_one - F_other.
    """
    places = np.unique(np.concatenate([first, second]))
    steps = np.zeros((n_groups, len(places)))
    for values, sign in ((first, 1.0), (second, -1.0)):
        np.add.at(steps, (group, np.searchsorted(places, values)), sign / len(values))
    return np.cumsum(steps, axis=1)
