"""Paired differences of AUC between arms, corrected for how many are shown.

Arms of one seed share rows, sides and random numbers, so the luck of the rows and part of the
training cancel: the difference is taken within each seed, by group, before anything is squared. A
family of differences gets one band that holds them all (max-t): its quantile is that of the
largest of their t statistics, correlated as their influence values are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.factors.joint import Aucs, Joint, join_seeds
from analysis.intervals.bounds import LEAST_GROUPS
from analysis.intervals.influence import Mask
from analysis.metrics import Floats
from inject.keyed import Stream, generator, item_key

_DRAWS = 20_000


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

    found = [difference_of(*pair) for pair in pairs]
    reasons = [_reason(pair, joint) for pair, joint in zip(pairs, found, strict=True)]
    members = [_members(*pair) for pair in pairs]
    sure = [joint for joint, reason in zip(found, reasons, strict=True) if not reason]
    drawn = largest_statistics(
        np.concatenate([joint.influence for joint in sure])
        if sure
        else np.zeros((0, found[0].influence.shape[1] if found else 0)),
        min((float(joint.freedom[0]) for joint in sure), default=1.0),
    )
    quantile = float(np.quantile(drawn, confidence))
    made = []
    for joint, reason, rows in zip(found, reasons, members, strict=True):
        value, error = float(joint.value[0]), float(joint.error[0])
        if reason:
            blank = float("nan")
            made.append(
                Contrast(value, blank, blank, blank, blank, blank, joint.seeds, rows, reason)
            )
            continue
        alone = float(t.ppf((1 + confidence) / 2, joint.freedom[0])) * error
        # The band is never narrower than the interval of one.
        half = max(quantile * error, alone)
        single = float(2 * t.sf(abs(value) / error, joint.freedom[0]))
        p_value = max(float((drawn >= abs(value) / error).mean()), single, 1 / _DRAWS)
        made.append(
            Contrast(
                value,
                value - half,
                value + half,
                value - alone,
                value + alone,
                min(p_value, 1.0),
                joint.seeds,
                rows,
                "",
            )
        )
    return made


def largest_statistics(influence: Floats, freedom: float) -> Floats:
    """Return draws of the largest of several correlated t statistics, where all truths are zero.

    Args:
        influence: of each number by group, [numbers, groups].
        freedom: the fewest degrees of freedom of any.
    """
    random = generator(0, Stream.BOOTSTRAP, item_key("contrasts"))
    sums = np.square(influence).sum(axis=1)
    scaled = influence[sums > 0] / np.sqrt(sums[sums > 0])[:, None]
    # The correlation has few numbers and many groups: its root is cheaper than draws of groups.
    values, vectors = np.linalg.eigh(scaled @ scaled.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = random.normal(size=(_DRAWS, len(scaled))) @ root.T
    chance = np.sqrt(random.chisquare(max(freedom, 1.0), size=_DRAWS) / max(freedom, 1.0))
    found: Floats = np.abs(draws).max(axis=1, initial=0.0) / chance
    return found


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
