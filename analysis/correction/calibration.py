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
    """Return the calibration of each draw.

    Args:
        scores: of the items, [draws or 1, items]; those without a score (NaN) are left out of the
            fit.
        positive: which items are members, or have a right answer; likewise.
        counts: how often a draw's calibration set contains an item, [draws, items].
    """
    from scipy.special import expit

    weights = counts * np.isfinite(scores)
    finite = scores[np.isfinite(scores)]
    centre, spread = (finite.mean(), finite.std() or 1.0) if len(finite) else (0.0, 1.0)
    values = np.where(np.isfinite(scores), (scores - centre) / spread, 0.0)
    design = np.stack([values, np.ones_like(values)], axis=2)
    across = design.transpose(0, 2, 1)
    target = _targets(positive, weights)
    line = np.zeros((len(counts), 2, 1))
    for _ in range(_STEPS):
        p = expit((design @ line)[:, :, 0])
        gradient = across @ (weights * (target - p))[:, :, None]
        curvature = across @ ((weights * p * (1 - p))[:, :, None] * design) + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        moved = np.abs(design @ step).max(axis=(1, 2), keepdims=True)
        line += step * (_LARGEST_STEP / np.maximum(moved, _LARGEST_STEP))
        if moved.max() < _CONVERGED:
            break
    slope = line[:, 0, 0] / spread
    prior = (counts * positive).sum(axis=1) / np.maximum(counts.sum(axis=1), 1.0)
    return Platt(slope, line[:, 1, 0] - slope * centre, prior)


def _targets(positive: Mask, weights: Floats) -> Floats:
    ones = (weights * positive).sum(axis=1, keepdims=True)
    zeros = weights.sum(axis=1, keepdims=True) - ones
    return np.where(positive, (ones + 1) / (ones + 2), 1 / (zeros + 2))


def log_odds(probabilities: Floats) -> Floats:
    """Return the logits of probabilities, which stay finite at 0 and 1."""
    inside = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(inside / (1 - inside))
