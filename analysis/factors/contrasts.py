"""Paired differences of AUC between arms, corrected for how many are shown.

Arms of one seed share rows, sides and random numbers, so the luck of the rows and part of the
training cancel: the difference is taken within each seed, by group, before anything is squared. A
family of differences gets one band that holds them all, each difference by Student's t with its own
degrees of freedom, corrected for their number (Bonferroni): a joint quantile would need one number
of degrees for all, and so the fewest that any has.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.factors.joint import Aucs, Joint, join_seeds
from analysis.intervals.bounds import LEAST_GROUPS
from analysis.intervals.influence import Mask


class Contrast(NamedTuple):
    """One difference."""

    value: float
    low: float
    """Of the band that holds the whole family."""
    high: float
    alone_low: float
    """Of the interval of this difference for itself."""
    alone_high: float
    p_value: float
    """Corrected for the family."""
    seeds: int
    members: int
    """Members behind it, over the seeds: those of the arm with fewer."""
    reason: str
    """Why there is no interval; empty where there is one."""


def difference_of(one: Aucs, other: Aucs) -> Joint:
    """Return `one - other` of K AUCs each, seed by seed; seeds that lack either are left out."""
    there = _both(one, other)
    return join_seeds((one.value - other.value)[there], (one.influence - other.influence)[there])


def contrasts(pairs: Sequence[tuple[Aucs, Aucs]], *, confidence: float = 0.95) -> list[Contrast]:
    """Return the difference of each pair of single AUCs, as one family.

    Args:
        pairs: two AUCs (K = 1) of the same seeds.
        confidence: that the band holds all differences.
    """
    from scipy.stats import t

    found = [(pair, difference_of(*pair)) for pair in pairs]
    reasons = [_reason(pair, joint) for pair, joint in found]
    number = reasons.count("")
    made = []
    for (pair, joint), reason in zip(found, reasons, strict=True):
        value, error, freedom = (
            float(part[0]) for part in (joint.value, joint.error, joint.freedom)
        )
        band = alone = p_value = float("nan")
        if not reason:
            alone, band = (
                float(t.isf((1 - confidence) / 2 / count, freedom)) * error for count in (1, number)
            )
            p_value = min(1.0, float(2 * t.sf(abs(value) / error, freedom)) * number)
        made.append(
            Contrast(
                value,
                value - band,
                value + band,
                value - alone,
                value + alone,
                p_value,
                joint.seeds,
                _members(*pair),
                reason,
            )
        )
    return made


def _both(one: Aucs, other: Aucs) -> Mask:
    """Return the seeds in which both have all their values."""
    return np.asarray(np.isfinite(one.value - other.value).all(axis=1), dtype=bool)


def _members(one: Aucs, other: Aucs) -> int:
    there = _both(one, other)
    return int(min(one.members[there].sum(), other.members[there].sum()))


def _reason(pair: tuple[Aucs, Aucs], joint: Joint) -> str:
    if not joint.seeds:
        return "no seed has both"
    fewest = int(min(one.groups.min() for one in pair))
    if fewest < LEAST_GROUPS:
        return f"{fewest} {'group' if fewest == 1 else 'groups'} on one side"
    if joint.error[0] <= 1e-9:
        return "the rows do not differ"
    return ""
