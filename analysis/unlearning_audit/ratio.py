"""The ratio rule of Shi et al. 2024, section 7.2.1: is a text as likely as before unlearning?

    r = score(unlearned) / score(original)

Both scores are means of log-probabilities, so they are negative, and a model that forgot a text
has a score further below zero: r is large. A text is *suspicious* where 1/1.15 < r < 1.15. A score
that is zero or positive is no mean of log-probabilities of which a ratio says anything; there is no
ratio then, with a reason.

The band that would have been right: its upper edge, from ratios of a model that never knew.

The lower edge stays. With the ratios of n chunks of the retrained model, the k-th lowest of those
above the lower edge, k = floor(rate · (n + 1)), flags a new chunk of a model that never knew with a
probability of at most k / (n + 1) <= rate, where chunks are exchangeable (split-conformal
quantile). For these very chunks that share is known beforehand, so the share that is reported is
cross-fitted: each cluster is flagged by the edge of the others. The interval of the edge holds the
quantiles at both ends of the interval of the share that lies below it (Woodruff 1952).
"""

import math
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Mask
from analysis.metrics import Floats
from analysis.unlearning_audit.estimates import Clusters, share


class Band(NamedTuple):
    """The ratios that are suspicious; both ends are outside."""

    low: float = 1 / 1.15
    high: float = 1.15

    def holds(self, ratios: Floats) -> Mask:
        """Return which ratios lie inside; NaN does not."""
        with np.errstate(invalid="ignore"):
            return (ratios > self.low) & (ratios < self.high)

    def flags(self, ratios: Floats) -> Floats:
        """Return 1 for the ratios inside, 0 for those outside, NaN if there is none."""
        return np.where(np.isfinite(ratios), self.holds(ratios), np.nan)


class Scores(NamedTuple):
    """A number a text: a detector's score, or the ratio of two."""

    values: Floats
    """NaN if there is none."""
    reasons: list[str | None]
    """Why there is none."""


def score_ratios(
    original: Sequence[float] | Floats, other: Sequence[float] | Floats, *, name: str = "unlearned"
) -> Scores:
    """Return score(other) / score(original) of each text.

    Args:
        original: of each text, mean log-probabilities.
        other: likewise, of the model that is held against it.
        name: of that model, for the reasons.
    """
    values, reasons = [], []
    for first, second in zip(original, other, strict=True):
        reason = _reason("original", first) or _reason(name, second)
        values.append(math.nan if reason else second / first)
        reasons.append(reason)
    return Scores(np.array(values, dtype=np.float64), reasons)


def _reason(model: str, score: float) -> str | None:
    if math.isnan(score):
        return f"no score of the {model} model"
    if score >= 0:
        how = "zero" if score == 0 else f"positive ({score:.3g})"
        return f"the score of the {model} model is {how}: a ratio is of negative scores"
    if math.isinf(score):
        return f"the score of the {model} model is not finite"
    return None


class Threshold(NamedTuple):
    """A band whose false alarms are as rare as was asked."""

    band: Band | None
    """None if the ratios are too few for the rate, or none lies above the lower edge."""
    edge: Estimate
    """Its upper edge."""
    false_alarms: Estimate
    """Cross-fitted: the share of chunks of the retrained model that it flags."""


def calibrated_band(ratios: Floats, clusters: Clusters, low: float, rate: float) -> Threshold:
    """Return the band whose share of false alarms is at most `rate`.

    Args:
        ratios: of the retrained model, one a chunk; NaN ones say nothing.
        clusters: of the chunks.
        low: the band's lower edge.
        rate: of false alarms, above 0 and below 1.
    """
    there = np.isfinite(ratios)
    known, own = ratios[there], clusters._replace(names=tuple(compress(clusters.names, there)))
    edge = conformal_edge(known, low, rate)
    if edge is None:
        needed = math.ceil(1 / rate - 1e-9) - 1
        reason = f"{len(known)} ratios are too few: a rate of {rate:g} takes {needed} of them"
        return Threshold(None, no_estimate(reason), no_estimate(reason))
    if edge <= low or not math.isfinite(edge):
        reason = "fewer chunks than the rate asks for lie above the lower edge"
        return Threshold(None, no_estimate(reason), no_estimate(reason))
    band = Band(low, edge)
    return Threshold(band, _edge(known, own, low, edge), _cross_fitted(known, own, low, rate))


def conformal_edge(ratios: Floats, low: float, rate: float) -> float | None:
    """Return the upper edge; None if there are too few ratios for the rate.

    Infinite where fewer than k ratios lie above the lower edge: no edge flags too many.
    """
    k = math.floor(rate * (len(ratios) + 1) + 1e-9)
    if k < 1:
        return None
    ordered = np.sort(np.where(ratios > low, ratios, np.inf))
    return float(ordered[k - 1])


def _edge(ratios: Floats, clusters: Clusters, low: float, edge: float) -> Estimate:
    below = share(((ratios > low) & (ratios <= edge)).astype(np.float64), clusters)
    if below.reason:
        return Estimate(edge, math.nan, math.nan, below.about)
    ordered = np.sort(np.where(ratios > low, ratios, np.inf))
    # So low a share may lie below all that were seen: then only the band's lower edge is known.
    before = math.floor(below.low * len(ordered))
    least = float(ordered[before - 1]) if before else low
    most = float(ordered[min(math.ceil(below.high * len(ordered)), len(ordered)) - 1])
    if not math.isfinite(most):
        reason = "the ratios reach no further than the edge"
        return no_estimate(reason).said(f"none: {reason}", below.caution)._replace(value=edge)
    return Estimate(edge, min(least, edge), max(most, edge), below.about)


def _cross_fitted(ratios: Floats, clusters: Clusters, low: float, rate: float) -> Estimate:
    names = np.array(clusters.names, dtype=object)
    flagged = np.zeros(len(ratios))
    for name in dict.fromkeys(clusters.names):
        own = names == name
        edge = conformal_edge(ratios[~own], low, rate)
        if edge is None:
            return no_estimate("too few ratios for the rate without one cluster")
        flagged[own] = Band(low, edge).holds(ratios[own])
    return share(flagged, clusters)
