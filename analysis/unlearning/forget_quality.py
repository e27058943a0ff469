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

from dataclasses import replace
from math import nan
from typing import NamedTuple

import numpy as np

from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Counts, pack_groups
from analysis.metrics import Floats
from analysis.unlearning.evidence import RETRAINED, ModelKey
from analysis.unlearning.measure_rows import RowWriter
from analysis.unlearning.measures import FORGET_LOG_PROBABILITY, present_in
from analysis.unlearning.settings import MeasureSettings
from inject.keyed import Stream, generator, item_key


class ForgetQuality(NamedTuple):
    """How far apart two models' values of the same texts are."""

    distance: Estimate
    """In [0, 1]: the largest difference of the two distribution functions."""
    p_value: float
    """Of the hypothesis that the models are exchangeable; NaN with fewer than three groups."""


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
        nothing = no_estimate(f"{len(names)} groups")
        estimate = nothing._replace(value=distance, members=len(one), groups=len(names))
        return ForgetQuality(estimate, nan)
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
    ends = max(distance - band, 0.0), min(distance + band, 1.0)
    estimate = Estimate(distance, *ends, members=len(one), groups=len(names))
    return ForgetQuality(estimate, p_value)


def write_forget_quality(writer: RowWriter, settings: MeasureSettings) -> None:
    """Add KS distance and p-value of every model against the retrained one."""
    for key in writer.cohort.keys:
        if key != RETRAINED:
            for dataset in (None, *writer.cohort.datasets):
                _write(writer, key, dataset, settings)


def _write(
    writer: RowWriter, key: ModelKey, dataset: str | None, settings: MeasureSettings
) -> None:
    cohort, measure = writer.cohort, FORGET_LOG_PROBABILITY
    pair = [measure.values(cohort, one) for one in (key, RETRAINED)]
    if not all(map(present_in, pair)):
        return
    one, other = measure.shared(cohort, *pair)
    rows = measure.rows(cohort)
    chosen = rows.member & np.isfinite(one)
    if dataset is not None:
        chosen &= rows.dataset == dataset
    if not chosen.any():
        for name in ("ks_distance", "ks_p"):
            writer.add_plain(key, replace(measure, name=name), dataset, {"note": "no value"})
        return
    groups = [f"{d}\0{g}" for d, g in zip(rows.dataset[chosen], rows.group[chosen], strict=True)]
    distance, p_value = forget_quality(
        one[chosen],
        other[chosen],
        pack_groups(groups)[0],
        permutations=settings.permutations,
        confidence=writer.confidence,
    )
    behind = {
        "forget": distance.members,
        "groups": distance.groups,
        "seeds": sum(all(one is not None for one in seed) for seed in zip(*pair, strict=True)),
        "note": distance.note,
    }
    ends = {end: getattr(distance, end) for end in ("value", "low", "high")}
    for name, values in (("ks_distance", ends), ("ks_p", {"value": p_value})):
        writer.add_plain(key, replace(measure, name=name), dataset, {**values, **behind})


def _steps(one: Floats, other: Floats, group: Counts, n_groups: int) -> Floats:
    """Return what each group adds to the difference of the distribution functions.

    Returns:
        [n_groups, places]: at every value of either sample. Sums over groups are F_one - F_other.
    """
    places = np.unique(np.concatenate([one, other]))
    steps = np.zeros((n_groups, len(places)))
    for values, sign in ((one, 1.0), (other, -1.0)):
        np.add.at(steps, (group, np.searchsorted(places, values)), sign / len(values))
    return np.cumsum(steps, axis=1)
