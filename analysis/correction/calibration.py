"""From scores to probabilities: Platt scaling of many calibration sets at once.

Platt 1999: a logistic regression on the score, whose targets are (n₊ + 1) / (n₊ + 2) for positive
and 1 / (n₋ + 2) for negative items, so that a set whose sides do not overlap has a finite slope.
Newton's method, in which a step that does not reduce the loss is halved, on scores standardised by
the items of the set: others have no influence. One call fits all draws: 200 sets of 100 items take
15 ms, where as many calls of scikit-learn, which gives the same numbers, take half a second.
"""

from typing import NamedTuple

import numpy as np

from analysis.intervals.influence import Floats, Mask

_STEPS = 100
_HALVINGS = 30
_CONVERGED = 1e-9
_RIDGE = 1e-9
_EQUAL = 1e-12
"""Deviation of equal scores, relative to the largest: a rounding error."""
_FARTHEST = 1e9
"""Standardised scores beyond it count as this far."""


class Platt(NamedTuple):
    """P(positive) = 1 / (1 + exp(-(slope · (score - centre) / spread + intercept))), [draws]."""

    slope: Floats
    intercept: Floats
    centre: Floats
    spread: Floats
    prior: Floats
    """Share of positive items in the calibration set: the probability of an item without score."""

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each item, [draws, items]; scores may be NaN."""
        from scipy.special import expit

        values = _standardise(scores, self.centre[:, None], self.spread[:, None])
        logits = self.slope[:, None] * values + self.intercept[:, None]
        return np.where(np.isnan(scores), self.prior[:, None], expit(logits))


def fit_platt(scores: Floats, positive: Mask, counts: Floats) -> Platt:
    """Return the calibration of each draw.

    Args:
        scores: of the items, [draws or 1, items]; those without a score (NaN) are left out of the
            fit.
        positive: which items are members, or have a right answer; likewise.
        counts: how often a draw's calibration set contains an item, [draws, items].

    Raises:
        RuntimeError: if a fit does not converge.
    """
    from scipy.special import expit

    weights = counts * np.isfinite(scores)
    centre, spread = _location(scores, weights)
    values = np.where(weights > 0, _standardise(scores, centre, spread), 0.0)
    design = np.stack([values, np.ones_like(values)], axis=2)
    across = design.transpose(0, 2, 1)
    target = _targets(positive, weights)
    line = np.zeros((len(counts), 2, 1))

    def losses(line: Floats) -> Floats:
        logits = (design @ line)[:, :, 0]
        return (weights * (np.logaddexp(0.0, logits) - target * logits)).sum(axis=1)

    before = losses(line)
    for _ in range(_STEPS):
        p = expit((design @ line)[:, :, 0])
        gradient = across @ (weights * (target - p))[:, :, None]
        if np.abs(gradient).max(initial=0.0) < _CONVERGED * max(float(weights.max(initial=1)), 1.0):
            break
        curvature = across @ ((weights * p * (1 - p))[:, :, None] * design) + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        for _ in range(_HALVINGS):
            after = losses(line + step)
            worse = after > before + _EQUAL * np.abs(before)
            if not worse.any():
                break
            step[worse] /= 2
        line, before = line + step, after
    else:
        raise RuntimeError(f"Platt scaling did not converge in {_STEPS} steps")
    prior = (counts * positive).sum(axis=1) / np.maximum(counts.sum(axis=1), 1.0)
    return Platt(line[:, 0, 0], line[:, 1, 0], centre[:, 0], spread[:, 0], prior)


def _location(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return mean and deviation of the items of each draw, [draws, 1]; 1 if all are equal."""
    used = np.where(weights > 0, scores, 0.0)
    largest = np.abs(used).max(axis=1, keepdims=True, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    mean = (weights * (used / scale)).sum(axis=1, keepdims=True) / total
    square = weights * (used / scale - mean) ** 2
    deviation = np.sqrt(square.sum(axis=1, keepdims=True) / total)
    return scale * mean, np.where(deviation > _EQUAL, scale * deviation, scale)


def _standardise(scores: Floats, centre: Floats, spread: Floats) -> Floats:
    return np.clip((scores - centre) / spread, -_FARTHEST, _FARTHEST)


def _targets(positive: Mask, weights: Floats) -> Floats:
    ones = (weights * positive).sum(axis=1, keepdims=True)
    zeros = weights.sum(axis=1, keepdims=True) - ones
    return np.where(positive, (ones + 1) / (ones + 2), 1 / (zeros + 2))


def log_odds(probabilities: Floats) -> Floats:
    """Return the logits of probabilities, which stay finite at 0 and 1."""
    inside = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(inside / (1 - inside))
