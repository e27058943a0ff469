"""A straight line on the probit scale through AUCs that share rows.

    probit(AUC_k) = intercept + slope · x_k

With normal scores a text moves by its shift over √2 on this scale, so a line means that scores move
evenly with x. It is fitted by weighted least squares, each AUC with the inverse of the variance
that normal scores would give it (Hanley and McNeil 1982): an estimated one would draw the line to
AUCs whose seeds agree by chance. Doses of one arm share non-members, so their AUCs are correlated:
the covariance of the line is that of the weights (a sandwich of the AUCs' joint covariance). A
perfect order (AUC 1 or 0) has no place on this scale: it is moved to half a pair less.
"""

from typing import NamedTuple

import numpy as np

from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.fieller import ThresholdCrossing, fieller
from analysis.intervals.influence import Floats
from analysis.intervals.joint import BySeed

REACHED = 0.75
"""The AUC whose dose is reported: half way from chance to certainty."""


class Points(NamedTuple):
    """The AUCs that a line goes through, on the probit scale."""

    x: Floats
    auc: Floats
    low: Floats
    """The interval of each, for itself."""
    high: Floats
    members: Floats


class FittedLine(NamedTuple):
    """A fitted line."""

    intercept: float
    slope: float
    low: float
    """Of the slope."""
    high: float
    p_value: float
    """That the slope is zero."""
    covariance: Floats
    """Of intercept and slope, [2, 2]."""
    freedom: float
    """Of the line at the point where it reaches the level, or at the nearest measured value."""
    misfit_p: float
    """Of the hypothesis that the points form a line; NaN with two points."""
    reach: ThresholdCrossing
    """Where it reaches `REACHED`."""
    seeds: int
    points: Points
    confidence: float

    def band(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the curve in AUC with its interval at each x: value, low, high."""
        from scipy.stats import norm, t

        design = np.stack([np.ones_like(x), x])
        middle = np.array([self.intercept, self.slope]) @ design
        error = np.sqrt(np.maximum((design * (self.covariance @ design)).sum(axis=0), 0.0))
        half = t.ppf((1 + self.confidence) / 2, self.freedom) * error
        return norm.cdf(middle), norm.cdf(middle - half), norm.cdf(middle + half)


def fit_line(
    aucs: BySeed, x: Floats, *, confidence: float = 0.95, start: float = 0.0
) -> FittedLine | str:
    """Fit a line through AUCs, or return the reason for its absence.

    Args:
        aucs: K of them; those with fewer than three groups on a side, or without a value in some
            seed, are left out, and so are seeds without any value.
        x: the position of each, [K].
        confidence: requested coverage.
        start: the least x that has a meaning.
    """
    from scipy.stats import norm, t

    seeds = np.isfinite(aucs.value).any(axis=1)
    aucs = aucs.part(np.asarray(seeds, dtype=bool), slice(None))
    usable = np.isfinite(aucs.value).all(axis=0) & (aucs.groups >= LEAST_GROUPS).all(axis=0)
    usable &= np.isfinite(x) & (len(aucs.value) > 0)
    if len(set(x[usable].tolist())) < 2:
        return "fewer than two values with enough groups in every seed"
    aucs, x = aucs.part(slice(None), usable), x[usable]
    value = aucs.value.mean(axis=0)
    margin = 0.5 / np.maximum(aucs.groups.mean(axis=0) ** 2, 1.0)
    moved = np.clip(value, margin, 1 - margin)
    scale = 1 / norm.pdf(norm.ppf(moved))
    each = aucs.covariance(np.diag(scale))
    least = _normal_variance(moved, aucs) * scale**2
    perfect = (value < margin) | (value > 1 - margin)
    added = np.diag(np.where(perfect, np.maximum(least - np.diag(each.covariance), 0.0), 0.0))
    covariance = each.covariance + added
    if not np.isfinite(covariance).all() or (np.diag(covariance) <= 1e-14).any():
        return "the rows of a value do not differ"
    if perfect.sum() > len(x) - 2:
        return "fewer than two values without a perfect order"
    design = np.stack([np.ones_like(x), x], axis=1)
    inverse = design.T / least
    weights = np.linalg.solve(inverse @ design, inverse)
    z = norm.ppf(moved)
    coefficients = weights @ z
    joint = aucs.covariance(weights * scale)
    of_line = joint.covariance + weights @ added @ weights.T
    freedom = _freedom(aucs, weights * scale, coefficients, x)
    quantile, of_slope = (
        float(t.ppf((1 + confidence) / 2, degrees)) for degrees in (freedom, joint.freedom[1])
    )
    error = float(np.sqrt(of_line[1, 1]))
    if not error > 0:
        return "the rows of a value do not differ"
    half = t.ppf((1 + confidence) / 2, each.freedom) * np.sqrt(np.diag(covariance))
    intercept, slope = coefficients.tolist()
    members = aucs.members.sum(axis=0).astype(float)
    return FittedLine(
        intercept=intercept,
        slope=slope,
        low=slope - of_slope * error,
        high=slope + of_slope * error,
        p_value=float(2 * t.sf(abs(slope) / error, joint.freedom[1])),
        covariance=of_line,
        freedom=freedom,
        misfit_p=_misfit_p_value(z - design @ coefficients, design, weights, covariance, freedom),
        reach=fieller(intercept - float(norm.ppf(REACHED)), slope, of_line, quantile, start=start),
        seeds=joint.seeds,
        points=Points(x, value, norm.cdf(z - half), norm.cdf(z + half), members),
        confidence=confidence,
    )


def _freedom(aucs: BySeed, weights: Floats, line: Floats, x: Floats) -> float:
    """Return the degrees of freedom of the line near the level."""
    from scipy.stats import norm

    place = (norm.ppf(REACHED) - line[0]) / line[1] if line[1] else x.max()
    near = np.array([[1.0, float(np.clip(place, x.min(), x.max()))]])
    return float(aucs.covariance(near @ weights).freedom[0])


def _misfit_p_value(
    residual: Floats, design: Floats, weights: Floats, covariance: Floats, freedom: float
) -> float:
    """Return the p-value of a Wald test that all residuals are zero (Hotelling's F)."""
    from scipy.stats import f

    extra = len(residual) - 2
    if extra < 1 or freedom <= extra:
        return float("nan")
    keep = np.eye(len(residual)) - design @ weights
    of_residual = keep @ covariance @ keep.T
    values, vectors = np.linalg.eigh((of_residual + of_residual.T) / 2)
    # The two directions of the line itself have no residual.
    main = np.argsort(values)[2:]
    if (values[main] <= 1e-14).any():
        return float("nan")
    squared = float(np.square(vectors[:, main].T @ residual) @ (1 / values[main]))
    scaled = squared * (freedom - extra + 1) / (freedom * extra)
    return float(f.sf(scaled, extra, freedom - extra + 1))


def _normal_variance(auc: Floats, aucs: BySeed) -> Floats:
    """Return the variance of an AUC of independent rows (Hanley and McNeil 1982), [K]."""
    groups = aucs.groups.mean(axis=0)
    once = auc / (2 - auc)
    twice = 2 * auc**2 / (1 + auc)
    total = auc * (1 - auc) + (groups - 1) * (once + twice - 2 * auc**2)
    return total / groups**2 / len(aucs.value)
