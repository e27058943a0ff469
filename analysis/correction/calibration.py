"""From scores to probabilities: Platt scaling of many calibration sets at once.

Platt 1999: a logistic regression on the score, whose targets are (n₊ + 1) / (n₊ + 2) for positive
and 1 / (n₋ + 2) for negative items, so that a set whose sides do not overlap has a finite slope.
Newton's method on standardised scores; a step moves no item by more than two logits. One call fits
all draws: 200 sets of 100 items take 10 ms, where as many calls of scikit-learn, which gives the
same numbers, take half a second.
"""

from typing import NamedTuple

import numpy as np

from analysis.intervals.influence import Floats, Mask

_STEPS = 50
_LARGEST_STEP = 2.0
_CONVERGED = 1e-10
_RIDGE = 1e-9


class Platt(NamedTuple):
    """P(positive) = 1 / (1 + exp(-(slope · score + intercept))), one per draw, [draws]."""

    slope: Floats
    intercept: Floats
    prior: Floats
    """Share of positive items in the calibration set: the probability of an item without score."""

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each item, [draws, items]; scores may be NaN."""
        from scipy.special import expit

        logits = self.slope[:, None] * scores + self.intercept[:, None]
        return np.where(np.isnan(scores), self.prior[:, None], expit(logits))


def fit_platt(scores: Floats, positive: Mask, counts: Floats) -> Platt:
    """Return the calibration of each draw's items, [draws, items] each.

    Args:
        scores: of the calibration sets; items without a score (NaN) are left out of the fit.
        positive: which items are members, or have a right answer.
        counts: how often a draw contains an item; 0 for never.
    """
    from scipy.special import expit

    weights = counts * np.isfinite(scores)
    total = np.maximum(weights.sum(axis=1), 1.0)[:, None]
    values = np.where(np.isfinite(scores), scores, 0.0)
    centre = (weights * values).sum(axis=1, keepdims=True) / total
    spread = np.sqrt((weights * (values - centre) ** 2).sum(axis=1, keepdims=True) / total)
    spread = np.where(spread > 0, spread, 1.0)
    x = np.where(weights > 0, (values - centre) / spread, 0.0)
    target = _targets(positive, weights)
    slope, intercept = np.zeros(len(x)), np.zeros(len(x))
    reach = np.abs(x).max(axis=1)
    for _ in range(_STEPS):
        p = expit(slope[:, None] * x + intercept[:, None])
        residual, curvature = weights * (target - p), weights * p * (1 - p)
        gradient = (residual * x).sum(axis=1), residual.sum(axis=1)
        xx, x1 = (curvature * x * x).sum(axis=1) + _RIDGE, (curvature * x).sum(axis=1)
        ones = curvature.sum(axis=1) + _RIDGE
        determinant = xx * ones - x1**2
        by_slope = (ones * gradient[0] - x1 * gradient[1]) / determinant
        by_intercept = (xx * gradient[1] - x1 * gradient[0]) / determinant
        moved = np.abs(by_slope) * reach + np.abs(by_intercept)
        shorter = _LARGEST_STEP / np.maximum(moved, _LARGEST_STEP)
        slope, intercept = slope + shorter * by_slope, intercept + shorter * by_intercept
        if moved.max() < _CONVERGED:
            break
    slope = slope / spread[:, 0]
    prior = (counts * positive).sum(axis=1) / np.maximum(counts.sum(axis=1), 1.0)
    return Platt(slope, intercept - slope * centre[:, 0], prior)


def _targets(positive: Mask, weights: Floats) -> Floats:
    ones = (weights * positive).sum(axis=1, keepdims=True)
    zeros = weights.sum(axis=1, keepdims=True) - ones
    return np.where(positive, (ones + 1) / (ones + 2), 1 / (zeros + 2))


def log_odds(probabilities: Floats) -> Floats:
    """Return the logits of probabilities, which stay finite at 0 and 1."""
    inside = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(inside / (1 - inside))
