"""The ratio rule, and how far it is right: every share of an audit with its interval.

The rule of Shi et al. 2024, section 7.2.1: is a text as likely as before unlearning? A text is
*suspicious* if 1/1.15 < r < 1.15, r = score(unlearned) / score(original) (`evidence`). It is
judged against two things that the ratio does not decide: how often it flags chunks on a model that
never saw them (false alarms), and whether what it flags is what the unlearned model still writes.

**The band that would have been right**: its upper edge, from ratios of a model that never knew; the
lower edge stays. With the ratios of n chunks of the retrained model, the k-th lowest of those
above the lower edge, k = floor(rate · (n + 1)), flags a new chunk of a model that never knew with a
probability of at most k / (n + 1) <= rate, if chunks are exchangeable (split-conformal
quantile). For these very chunks that share is known beforehand, so the share that is reported is
cross-fitted: each cluster is flagged by the edge of the others. The interval of the edge spans the
quantiles at both ends of the interval of the share below it (Woodruff 1952).
"""

import math
from collections.abc import Mapping
from itertools import compress
from typing import NamedTuple

import numpy as np

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Floats, Mask
from analysis.unlearning_audit.evidence import LONGEST, Chunks
from analysis.unlearning_audit.shares import (
    Clusters,
    ControlOverlap,
    Written,
    clusters_of,
    control_level,
    difference,
    mean,
    share,
    share_false,
    share_missed,
    share_remembered,
    written_of,
)

SIMILARITIES = ("rouge_l", LONGEST)
NO_CONTROL = "there is neither a retrained model nor a held-out text"
_BOTH = ("original", "unlearned")
_NOTHING = "nothing"


class Band(NamedTuple):
    """The ratios that are suspicious; both ends are outside."""

    low: float = 1 / 1.15
    high: float = 1.15

    def holds(self, ratios: Floats) -> Mask:
        """Return a mask of the ratios inside the band; NaN is outside."""
        with np.errstate(invalid="ignore"):
            return (ratios > self.low) & (ratios < self.high)

    def flags(self, ratios: Floats) -> Floats:
        """Return 1 for the ratios inside, 0 for those outside, NaN if there is none."""
        return np.where(np.isfinite(ratios), self.holds(ratios), np.nan)


Calibrated = tuple[Band | None, Estimate, Estimate]
"""A band, its upper edge, and the share of false alarms that it has."""


def calibrated_band(ratios: Floats, clusters: Clusters, low: float, rate: float) -> Calibrated:
    """Return the band whose share of false alarms is at most `rate`, its edge and that share.

    The share is cross-fitted: that of the chunks of the retrained model that the band flags.
    Without a band, both contain the reason.

    Args:
        ratios: of the retrained model, one per chunk; NaN ones are ignored.
        clusters: of the chunks.
        low: the band's lower edge.
        rate: of false alarms, above 0 and below 1.
    """
    finite = np.isfinite(ratios)
    usable, own = ratios[finite], clusters._replace(names=tuple(compress(clusters.names, finite)))
    edge = conformal_edge(usable, low, rate)
    if edge is None:
        needed = math.ceil(1 / rate - 1e-9) - 1
        return _no_calibration(
            f"{len(usable)} ratios are too few: a rate of {rate:g} takes {needed} of them"
        )
    if edge <= low or not math.isfinite(edge):
        return _no_calibration("fewer chunks than the rate requires are above the lower edge")
    return Band(low, edge), _edge(usable, own, low, edge), _cross_fitted(usable, own, low, rate)


def _no_calibration(reason: str) -> Calibrated:
    return None, no_estimate(reason), no_estimate(reason)


def conformal_edge(ratios: Floats, low: float, rate: float) -> float | None:
    """Return the upper edge; None if there are too few ratios for the rate.

    Infinite if fewer than k ratios are above the lower edge: no edge flags too many.
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
    # So low a share may be below all observed ratios: then only the band's lower edge is known.
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


class AuditShares(NamedTuple):
    """The quantities of an audit."""

    shares: dict[str, Estimate]
    """Each quantity by its name in the table of findings."""
    control: str
    """On which chunks and which model false alarms were measured."""
    written: Mapping[str, Written]
    """By model: which of the audited chunks it remembers."""
    longest: Mapping[str, float]
    """By model: the longest run of true words that it writes of a chunk; empty if it wrote
    none."""


def audit_shares(audited: Chunks, held_out: Chunks, *, band: Band, rate: float) -> AuditShares:
    """Return the shares of an audit, with their intervals.

    Args:
        audited: the chunks that should be forgotten. Those that are not suspicious and were
            continued are a sample of all that are not.
        held_out: chunks of texts that no model saw; none without any.
        band: of suspicious ratios.
        rate: of false alarms, that the calibrated band is to have.
    """
    clusters, ratios = audited.clusters(), audited.ratios["unlearned"]
    flags, levels = band.flags(ratios), _levels(audited, held_out)
    longest = {model: audited.closest(model) for model in _BOTH}
    continued = np.isfinite(longest["unlearned"])
    written = {
        model: written_of(runs, flags == 1, continued, levels[model], clusters)
        for model, runs in longest.items()
    }
    unlearned = written["unlearned"]
    control, of_control, chunks = _control(audited, held_out)
    alarms, (then, edge, then_alarms) = no_estimate(NO_CONTROL), _no_calibration(NO_CONTROL)
    if control != _NOTHING:
        own = chunks.clusters()
        alarms = share(band.flags(of_control), own)
        then, edge, then_alarms = calibrated_band(of_control, own, band.low, rate)
    nothing = no_estimate(edge.reason or "there is no calibrated band")
    shares = {
        **{f"remembered_{model}": share_remembered(memory) for model, memory in written.items()},
        "flagged": share(flags, clusters),
        "false_alarms": alarms,
        "missed": share_missed(unlearned, flags),
        "wrong": share_false(unlearned, flags),
        "calibrated_edge": edge,
        "calibrated_false_alarms": then_alarms,
        "calibrated_flagged": share(then.flags(ratios), clusters) if then else nothing,
        "calibrated_missed": share_missed(unlearned, then.flags(ratios)) if then else nothing,
    }
    if held_out.rows and "retrained" in audited.ratios:
        outside = band.flags(held_out.ratios["unlearned"])
        shares["flagged_holdout"] = share(outside, held_out.clusters())
    continued_runs = {model: runs[continued] for model, runs in longest.items() if continued.any()}
    most = {model: float(np.nanmax(runs)) for model, runs in continued_runs.items()}
    return AuditShares(shares, control, written, most)


def counted_shares(
    ratios: Floats, retrained: Floats, remembered: Mapping[str, Floats], band: Band
) -> dict[str, Floats]:
    """Return the indicators of shares: 1 for a chunk that counts, 0, or NaN if not in question.

    Args:
        ratios: of the unlearned model, one per chunk.
        retrained: of the retrained model.
        remembered: by model, 1 for chunks that it remembers.
        band: of suspicious ratios.
    """
    flags, unlearned = band.flags(ratios), remembered["unlearned"]
    return {
        "flagged": flags,
        "false_alarms": band.flags(retrained),
        **{f"remembered_{model}": remembered[model] for model in _BOTH},
        "missed": np.where((unlearned == 1) & np.isfinite(flags), 1 - flags, np.nan),
        "wrong": np.where(flags == 1, 1 - unlearned, np.nan),
    }


def _control(audited: Chunks, held_out: Chunks) -> tuple[str, Floats, Chunks]:
    """Return a model that never saw some chunks: its name, its ratios, and the chunks."""
    if "retrained" in audited.ratios:
        return "the retrained model on the same chunks", audited.ratios["retrained"], audited
    if not held_out.rows:
        return _NOTHING, np.zeros(0), held_out
    name = (
        "the unlearned model on texts that no model saw, which is weaker: unlearning may move "
        "texts of its own kind otherwise"
    )
    return name, held_out.ratios["unlearned"], held_out


def _levels(audited: Chunks, held_out: Chunks) -> dict[str, ControlOverlap]:
    """Return by model what its control writes.

    The retrained model is the control of both models; without one, each model is its own, on texts
    that no model saw: chance overlaps of one model do not predict those of another.
    """
    if "retrained" in audited.ratios:
        about = "the retrained model on the same chunks"
        return dict.fromkeys(_BOTH, control_level(audited.closest("retrained"), about))
    about = "each model on texts that no model saw" if held_out.rows else ""
    return {model: control_level(held_out.closest(model), about) for model in _BOTH}


def likeness(audited: Chunks, flagged: Floats) -> dict[str, Estimate]:
    """Return the similarity to the truth of each model's continuations of the flagged chunks.

    The closest of a chunk's continuations counts, as in Shi et al. 2024, figure 7.
    """
    recalls = {}
    for model in dict.fromkeys(audited.continuations["model"].to_pylist()):
        for column in SIMILARITIES:
            best = audited.closest(model, column)
            places = np.flatnonzero((flagged == 1) & np.isfinite(best))
            if len(places):
                clusters = clusters_of([audited.rows[at] for at in places.tolist()])
                recalls[f"{column}_{model}"] = mean(best[places], clusters)
    return recalls


def question_findings(questions: Chunks, band: Band) -> dict[str, Estimate]:
    """Return the recall of questions that the rule keeps, of the rest, and the difference.

    As Shi et al. 2024, section 7.2.2: 0.23 for the kept against 0.10 for the rest. A question's
    value is the mean over its sampled answers; intervals are by groups of questions. Questions
    without a ratio are on neither side.
    """
    flags = band.flags(questions.ratios["unlearned"])
    answers = questions.written("unlearned", "rouge_l")
    recall = np.array([np.mean(each) if each else np.nan for each in answers])
    recall[~np.isfinite(flags)] = np.nan
    if not np.isfinite(recall).any():
        return {}
    clusters = Clusters(tuple(row.group for row in questions.rows))
    sides = {"recall_kept": flags == 1, "recall_rest": flags == 0}
    means = {name: mean(np.where(side, recall, np.nan), clusters) for name, side in sides.items()}
    return {**means, "recall_difference": difference(recall, flags == 1, clusters)}
