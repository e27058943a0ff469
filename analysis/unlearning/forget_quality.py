"""Forget quality: do texts look under the unlearned model as they do under the retrained one?

The two-sample Kolmogorov-Smirnov distance D between the mean log-probabilities of the forget set
under both models (Maini et al. 2024 compare the models' truth ratios so; here every text counts,
with or without questions). Their p-value takes the two samples for independent, and texts for
independent of each other; here both samples are the same texts, in groups.

- **p-value**: were the models exchangeable, swapping their values for whole groups of texts would
  change nothing; D is compared with that of such swaps, one swap for a group in all seeds.
- **Interval**: the difference of the two distribution functions has a band that holds it everywhere
  at once, by random weights on groups (a multiplier bootstrap); D lies no farther from that
  of the sample than the band is wide. It holds the truth more often than asked for, and its low end
  is 0 unless a difference is sure. Seeds are pooled: it speaks of these models.
"""

from typing import NamedTuple

import numpy as np

from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.influence import Counts
from analysis.metrics import Floats
from analysis.unlearning.auc_measures import on_shared_rows
from analysis.unlearning.evidence import RETRAINED, ModelKey
from analysis.unlearning.numbers import Measure, RowWriter
from analysis.unlearning.settings import MeasureSettings
from analysis.unlearning.text_measures import FORGET_LOG_PROBABILITY, values_of
from inject.keyed import Stream, generator, item_key


class ForgetQuality(NamedTuple):
    """How far apart two models' values of the same texts are."""

    distance: float
    """In [0, 1]: the largest difference of the two distribution functions."""
    low: float
    high: float
    p_value: float
    """Of the hypothesis that the models are exchangeable; NaN with fewer than three groups."""
    texts: int
    groups: int


def forget_quality(
    one: Floats, other: Floats, groups: Counts, *, permutations: int, confidence: float
) -> ForgetQuality:
    """Compare the values of texts under two models.

    Args:
        one, other: finite, of the same texts, [n].
        groups: of each text, [n].
        permutations: swaps behind the p-value, and draws behind the interval.
        confidence: coverage asked for.
    """
    names, group = np.unique(groups, return_inverse=True)
    steps = _steps(one, other, group, len(names))
    distance = float(np.abs(steps.sum(axis=0)).max(initial=0.0))
    if len(names) < LEAST_GROUPS:
        nothing = float("nan")
        return ForgetQuality(distance, nothing, nothing, nothing, len(one), len(names))
    random = generator(0, Stream.BOOTSTRAP, item_key(f"forget quality {len(names)}"))
    signs = random.choice(np.array([-1.0, 1.0]), size=(permutations, len(names)))
    swapped = np.abs(signs @ steps).max(axis=1)
    # Rounding must not break ties with the sample itself.
    p_value = (1 + int((swapped >= distance - 1e-12).sum())) / (1 + permutations)
    scale = np.sqrt(len(names) / (len(names) - 1))
    sizes = np.bincount(group, minlength=len(names))[:, None] / len(one)
    centred = scale * (steps - sizes * steps.sum(axis=0))
    weights = random.normal(size=(permutations, len(names)))
    band = float(np.quantile(np.abs(weights @ centred).max(axis=1), confidence))
    return ForgetQuality(
        distance,
        max(distance - band, 0.0),
        min(distance + band, 1.0),
        p_value,
        len(one),
        len(names),
    )


def write_forget_quality(writer: RowWriter, settings: MeasureSettings) -> None:
    """Add KS distance and p-value of every model against the retrained one."""
    for key in writer.cohort.keys:
        if key != RETRAINED:
            for dataset in (None, *writer.cohort.datasets):
                _write(writer, key, dataset, settings)


def _write(
    writer: RowWriter, key: ModelKey, dataset: str | None, settings: MeasureSettings
) -> None:
    cohort = writer.cohort
    pair = [values_of(cohort, one, FORGET_LOG_PROBABILITY) for one in (key, RETRAINED)]
    if any(all(one is None for one in values) for values in pair):
        return
    one, other = on_shared_rows(cohort, *pair)
    rows = cohort.chosen(lambda rows: rows.forget)
    chosen = rows.member & np.isfinite(one)
    if dataset is not None:
        chosen &= rows.dataset == dataset
    groups = [f"{d}\0{g}" for d, g in zip(rows.dataset[chosen], rows.group[chosen], strict=True)]
    distance = Measure(key=key, name="ks_distance")
    p_value = Measure(key=key, name="ks_p")
    if not groups:
        for measure in (distance, p_value):
            writer.add_plain(measure, dataset, {"note": "no value"})
        return
    number = np.unique(np.array(groups), return_inverse=True)[1].astype(np.int64)
    found = forget_quality(
        one[chosen],
        other[chosen],
        number,
        permutations=settings.permutations,
        confidence=writer.confidence,
    )
    seeds = sum(all(one is not None for one in seed) for seed in zip(*pair, strict=True))
    counts = {"forget": found.texts, "groups": found.groups, "seeds": seeds}
    about = f"none: {found.groups} groups" if np.isnan(found.p_value) else ""
    writer.add_plain(
        distance,
        dataset,
        {"value": found.distance, "low": found.low, "high": found.high, **counts, "note": about},
    )
    writer.add_plain(
        p_value,
        dataset,
        {"value": found.p_value, **counts, "note": about},
    )


def _steps(one: Floats, other: Floats, group: Counts, n_groups: int) -> Floats:
    """Return what each group adds to the difference of the distribution functions.

    Returns:
        [n_groups, places]: at every value of either sample. Sums over groups are F_one - F_other.
    """
    places = np.unique(np.concatenate([one, other]))
    found = np.zeros((n_groups, len(places)))
    for values, sign in ((one, 1.0), (other, -1.0)):
        np.add.at(found, (group, np.searchsorted(places, values)), sign / len(values))
    return np.cumsum(found, axis=1)
