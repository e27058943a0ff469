"""A value with its interval; one AUC or TPR of arrays of scores with groups and seeds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.intervals.bounds import Scale, find_interval
from analysis.intervals.clustered import Clustered, Weighted, cluster
from analysis.intervals.influence import Sample, Side, auc_sample, pack_groups, tpr_sample
from analysis.metrics import SUPPORT, Floats, supports_rate

Mask = npt.NDArray[np.bool_]


class Estimate(NamedTuple):
    """A value with its interval; NaN with a reason where there is none."""

    value: float
    low: float
    high: float
    reason: str | None = None
    """Why there is no value, or no interval."""
    caution: str | None = None
    """Why the interval is not to be trusted, or of which models alone it speaks."""


def no_estimate(reason: str) -> Estimate:
    """Return an estimate that says why there is none."""
    return Estimate(float("nan"), float("nan"), float("nan"), reason)


def auc_estimate(
    scores: Floats,
    member: Mask,
    groups: Sequence[str],
    seeds: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Return the AUC with its interval; the value is the mean of the seeds' AUCs.

    Args:
        scores: one a row.
        member: which rows are members.
        groups: of each row; a group of two seeds, or of both sides, is one group.
        seeds: which model gave each score; None means one.
        confidence: coverage asked for.
    """
    number, count = pack_groups(groups)
    of_seed = np.asarray([""] * len(scores) if seeds is None else seeds, dtype=object)
    samples, reasons = [], []
    for seed in dict.fromkeys(of_seed.tolist()):
        rows = np.flatnonzero(of_seed == seed)
        inside, outside = rows[member[rows]], rows[~member[rows]]
        reason = _reason(scores, number, inside, outside)
        reasons.append(reason)
        if reason:
            continue
        sample = auc_sample(
            Side(scores[inside], number[inside]),
            Side(scores[outside], number[outside]),
            np.ones((1, len(inside)), dtype=bool),
            count,
        )
        samples.append([Weighted("", sample, np.array([float(len(inside))]))])
    if not samples:
        return no_estimate("; ".join(dict.fromkeys(one for one in reasons if one)))
    return _estimate(cluster(samples), Scale.AUC, confidence)


def tpr_estimate(
    scores: Floats,
    member: Mask,
    groups: Sequence[str],
    rate: float,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Return the TPR at an FPR of at most `rate` with its interval, as `auc_estimate` does.

    Below 10 / rate non-members there is none, and the reason says so. The value is at the largest
    k / m <= rate, the interval of the rate that new non-members are expected to have.
    """
    number, count = pack_groups(groups)
    inside, outside = np.flatnonzero(member), np.flatnonzero(~member)
    if reason := _reason(scores, number, inside, outside):
        return no_estimate(reason)
    if not supports_rate(rate, len(outside)):
        return no_estimate(f"fewer than {np.ceil(SUPPORT / rate - 1e-9):.0f} non-members")
    sample = tpr_sample(
        Side(scores[inside], number[inside]),
        Side(scores[outside], number[outside]),
        np.ones((1, len(inside)), dtype=bool),
        count,
        rate,
    )
    found = _estimate(_alone(sample), Scale.TPR, confidence)
    above = np.sort(scores[outside])
    at_or_above = len(above) - np.searchsorted(above, scores[inside], side="left")
    value = float((at_or_above <= np.floor(rate * len(above) + 1e-9)).mean())
    return around(value, found)


def around(value: float, found: Estimate) -> Estimate:
    """Return an estimate at another value, its interval reaching as far as that."""
    return found._replace(value=value, low=min(found.low, value), high=max(found.high, value))


def _alone(sample: Sample) -> Clustered:
    return cluster([[Weighted("", sample, np.ones(1))]])


def _estimate(found: Clustered, scale: Scale, confidence: float) -> Estimate:
    interval = find_interval(found, scale, confidence=confidence)
    about = interval.about[0]
    ends = (float(found.value[0]), float(interval.low[0]), float(interval.high[0]))
    if about.startswith("none: "):
        return Estimate(*ends, reason=about.removeprefix("none: "))
    _, _, caution = about.partition("; ")
    return Estimate(*ends, caution=caution or None)


def _reason(
    scores: Floats,
    groups: npt.NDArray[np.int64],
    inside: npt.NDArray[np.int64],
    outside: npt.NDArray[np.int64],
) -> str | None:
    """Say why rows support no statement, or return None where they do."""
    if reason := degenerate_reason(scores[inside], scores[outside]):
        return reason
    for side, rows in (("members", inside), ("non-members", outside)):
        if len(set(groups[rows].tolist())) < 2:
            return f"one group only among the {side}"
    return None


def degenerate_reason(members: Floats, nonmembers: Floats) -> str | None:
    """Say why scores support no statement at all, or None where they do."""
    for side, scores in (("members", members), ("non-members", nonmembers)):
        if len(scores) == 0:
            return f"no {side}"
        if len(scores) == 1:
            return f"one row only among the {side}"
    first = members[0]
    if (members == first).all() and (nonmembers == first).all():
        return "all scores are equal"
    return None
