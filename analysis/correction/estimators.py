"""Six estimators of a benchmark's accuracy without contamination, and an oracle.

After "Spiking the training data to correct for test set contamination" (arXiv 2605.24818). Each is
a weighted mean over items, Σ w v / Σ w, so one formula gives its value, and another how far each
item moves it. Of each item, `right` is 1 for a right answer of the contaminated model and else 0
(the paper's y), `member` the probability that a detector's score gives to membership (d̂), and
`clean` the probability that a model without contamination answers right (ĉ). Arrays are [draws,
items]; `counts` is how often a draw contains an item. Cost: 200 draws of 400 items take 5 ms.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from analysis.intervals.influence import Floats, Mask

NAIVE, IMPUTED, ORACLE = "naive", "imputed", "oracle"
WEIGHTED, HARD, LARGEST_GAIN, COMBINED = "weighted", "hard", "largest_gain", "combined"
BY_SCORES = (WEIGHTED, HARD, LARGEST_GAIN, COMBINED)
"""Those that use a detector's scores."""
THRESHOLDS = 200
LEAST_SHARE = 0.1
"""Share of the items that a threshold has to leave."""
_TIE = 1e-9
"""Rounding of a probability that is 0.5."""
_NO_WEIGHT = 1e-6
"""Mean weight of an item below which an estimator is undefined."""


class Terms(NamedTuple):
    """A weighted mean, [draws, items] each."""

    weights: Floats
    values: Floats


def score_free_terms(
    right: Floats, clean: Floats, counts: Floats, truth: Mask | None = None
) -> Mapping[str, Terms]:
    """Return the estimators that use no scores.

    Args:
        right, clean, counts: see above.
        truth: which items are members, for the oracle; None if that is unknown.
    """
    terms = {NAIVE: Terms(counts, right), IMPUTED: Terms(counts, clean)}
    return terms if truth is None else terms | {ORACLE: Terms(counts * ~truth, right)}


def score_terms(
    right: Floats, member: Floats, clean: Floats, counts: Floats
) -> Mapping[str, Terms]:
    """Return the estimators that use scores."""
    return {
        WEIGHTED: Terms(counts * (1 - member), right),
        HARD: Terms(counts * (member <= 0.5 + _TIE), right),
        LARGEST_GAIN: Terms(counts * below_threshold(right, member, counts), right),
        COMBINED: Terms(counts, member * clean + (1 - member) * right),
    }


def estimate(terms: Terms) -> Floats:
    """Return the estimate of each draw; NaN if it leaves no weight."""
    total = terms.weights.sum(axis=-1)
    defined = total > _NO_WEIGHT * terms.weights.shape[-1]
    return (terms.weights * terms.values).sum(axis=-1) / np.where(defined, total, np.nan)


def item_influence(terms: Terms, value: Floats) -> Floats:
    """Return the change of the estimates per item, [draws, items]."""
    total = terms.weights.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return terms.weights * (terms.values - value[..., None]) / total


def below_threshold(right: Floats, member: Floats, counts: Floats) -> Mask:
    """Return which items are below the threshold of largest gain (ConTAM, arXiv 2411.03923).

    Thresholds are equally spaced over the range of `member`. The gain of one is z = (mean(y) -
    mean(y: d̂ <= t)) / (sd(y) / √n_t); sd(y), the same for all, does not change their order. If no
    gain is positive, all items are below.
    """
    low = np.where(counts > 0, member, np.inf).min(axis=-1, keepdims=True)
    high = np.where(counts > 0, member, -np.inf).max(axis=-1, keepdims=True)
    span = np.where(high > low, high - low, 1.0)
    place = np.ceil(THRESHOLDS * (member - low) / span).astype(np.int64).clip(1, THRESHOLDS) - 1
    items, right_items = (_up_to(place, each) for each in (counts, counts * right))
    mean = right_items[..., -1:] / items[..., -1:]
    gain = (mean - right_items / np.maximum(items, 1.0)) * np.sqrt(items)
    gain = np.where(items >= LEAST_SHARE * items[..., -1:], gain, -np.inf)
    best = np.where(gain.max(axis=-1) > 0, gain.argmax(axis=-1), THRESHOLDS - 1)
    return place <= best[..., None]


def _up_to(place: Floats, weights: Floats) -> Floats:
    """Return the weight of the items at or below each threshold, [draws, thresholds]."""
    draws = len(place)
    cells = (THRESHOLDS * np.arange(draws)[:, None] + place).ravel()
    sums = np.bincount(cells, weights.ravel(), minlength=THRESHOLDS * draws)
    return sums.reshape(draws, THRESHOLDS).cumsum(axis=1)
