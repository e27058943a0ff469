"""From a variance to the two ends: on the scale that keeps them inside what is possible.

An AUC on the logit scale, a TPR as Wilson 1927 has it for a share, Somers' D on Fisher's scale, a
slope as it stands; all with Student's t. The difference of two AUCs has the largest and the least
that an ellipse of their two logits holds. Where simulation (docs/statistics.md) shows that no
interval of these covers, there is none, and a sentence says so.
"""

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.intervals.clustered import FROM_SEEDS, Clustered
from analysis.metrics import Floats

LEAST_GROUPS = 3
"""Groups a side below which there is no interval: with two it covers 83 %."""
TRUSTED_GROUPS = 15
"""Groups of members below which an interval is shown and said not to be trusted."""
STEEP = 0.95
"""An AUC beyond it, of grouped rows and fewer than `TRUSTED_GROUPS` groups, has no interval."""
STEEP_GROUPS = 50
"""The same number for an adjusted AUC, of grouped rows or not."""


ALIKE = "the rows do not differ"
"""Why a number without any variance has no interval."""


class Scale(Enum):
    """How the two ends are found."""

    AUC = "logit"
    TPR = "Wilson"
    TREND = "Fisher"
    SLOPE = "plain"


class Interval(NamedTuple):
    """K intervals with what is to be said of each."""

    low: Floats
    high: Floats
    about: list[str]
    """`any seed`, `this model`, `these 2 models`; or `none: ` and why."""


def find_interval(
    found: Clustered,
    scale: Scale,
    *,
    confidence: float,
    grouped: npt.NDArray[np.bool_] | bool = False,
    adjusted: bool = False,
    quantile: Floats | float | None = None,
) -> Interval:
    """Return the intervals of K numbers.

    Args:
        found: values, variances, groups.
        scale: of what kind the numbers are.
        confidence: coverage asked for.
        grouped: whether some group has several rows, of all numbers or of each, [K].
        adjusted: whether the numbers have the luck of the pool taken out.
        quantile: of how many standard errors half an interval is; Student's t where None.
    """
    from scipy.special import stdtrit

    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        student = stdtrit(np.maximum(found.freedom, 1.0), 1 - tail)
        half = (student if quantile is None else quantile) * np.sqrt(found.variance)
        low, high = _limited(found, scale, _ends(found.value, half, scale), tail)
    least = STEEP_GROUPS if adjusted else np.where(grouped, TRUSTED_GROUPS, 0)
    about = _abouts(found, least if scale is Scale.AUC else 0)
    limit = _at_limit(found.value) & (scale in _SHARES)
    flat = np.isfinite(found.value) & (found.variance <= _NOTHING) & ~limit
    beyond = np.isfinite(found.value) & ~(np.isfinite(low) & np.isfinite(high))
    for reason, where in ((ALIKE, flat), ("beyond what is possible", beyond)):
        for k in np.flatnonzero(where):
            if not about[k].startswith("none"):
                about[k] = f"none: {reason}"
    return _given(low, high, about)


def find_difference(
    found: Clustered,
    one: Clustered,
    other: Clustered,
    *,
    confidence: float,
    quantile: Floats | float | None = None,
) -> Interval:
    """Return the intervals of K differences of AUC, `one` minus `other`.

    The two logits lie in an ellipse about those that were found, as they are correlated; the ends
    are the least and the largest difference of any two AUCs in it. A difference of equal scores is
    0 and has no width. Where one AUC is 0 or 1 the two exact ends are put together.

    Args:
        found: the differences: values, variances (what both share has cancelled), groups.
        one, other: the AUCs.
        confidence: coverage asked for.
        quantile: of how many standard errors half an interval is; Student's t where None.
    """
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        halves, shared = _correlated(found, one, other, tail, quantile)
        moved = _in_ellipse(one.value, other.value, halves, shared)
        gaps = moved[0] - moved[1]
        (left, right), (other_left, other_right) = _exact_ends((one, other), halves, tail)
        below = np.hypot(one.value - left, other_right - other.value)
        above = np.hypot(right - one.value, other.value - other_left)
    limit = _at_limit(one.value) | _at_limit(other.value)
    return _given(
        np.where(limit, found.value - below, gaps.min(axis=0)),
        np.where(limit, found.value + above, gaps.max(axis=0)),
        _abouts(found, 0),
    )


def find_relative_change(
    found: Clustered, one: Clustered, other: Clustered, *, confidence: float
) -> Interval:
    """Return the intervals of K relative changes of AUC, (one - other) / other.

    As `find_difference`: the least and the largest relative change of any two AUCs in the ellipse,
    so that neither end lies below -1. Where one AUC is 0 or 1 the ends are those of the two exact
    intervals that lie farthest apart; where the other's reaches 0 there is none above.

    Args:
        found: the differences: variances (what both share has cancelled), groups.
        one, other: the AUCs.
        confidence: coverage asked for.
    """
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        halves, shared = _correlated(found, one, other, tail, None)
        moved = _in_ellipse(one.value, other.value, halves, shared)
        changes = moved[0] / moved[1] - 1
        (left, right), (other_left, other_right) = _exact_ends((one, other), halves, tail)
        farthest = left / other_right - 1, right / other_left - 1
    limit = _at_limit(one.value) | _at_limit(other.value)
    return _given(
        np.where(limit, farthest[0], changes.min(axis=0)),
        np.where(limit, farthest[1], changes.max(axis=0)),
        _abouts(found, 0),
    )


def _correlated(
    found: Clustered,
    one: Clustered,
    other: Clustered,
    tail: float,
    quantile: Floats | float | None,
) -> tuple[list[Floats], Floats]:
    """Return the half widths of two AUCs, and how they are correlated."""
    from scipy.special import stdtrit

    student = stdtrit(np.maximum(found.freedom, 1.0), 1 - tail) if quantile is None else quantile
    halves = [student * np.sqrt(auc.variance) for auc in (one, other)]
    product = 2 * np.sqrt(one.variance * other.variance)
    shared = (one.variance + other.variance - found.variance) / product
    shared = np.where(product > _NOTHING, np.clip(shared, -1.0, 1.0), 0.0)
    return halves, np.where(found.variance > _NOTHING, shared, 1.0)


def _exact_ends(
    aucs: Sequence[Clustered], halves: Sequence[Floats], tail: float
) -> list[tuple[Floats, Floats]]:
    """Return the ends of each AUC alone, exact ones where it is 0 or 1."""
    return [
        _limited(auc, Scale.AUC, _ends(auc.value, half, Scale.AUC), tail)
        for auc, half in zip(aucs, halves, strict=True)
    ]


def _in_ellipse(
    one: Floats, other: Floats, halves: Sequence[Floats], shared: Floats
) -> list[Floats]:
    """Return pairs of AUCs whose logits lie on an ellipse, [directions, K] each."""
    turn = np.linspace(0, 2 * np.pi, _DIRECTIONS)[:, None]
    first = np.cos(turn)
    second = shared * first + np.sqrt(1 - shared**2) * np.sin(turn)
    return [
        1 / (1 + np.exp(-(np.log(value / (1 - value)) + half / (value * (1 - value)) * way)))
        for value, half, way in ((one, halves[0], first), (other, halves[1], second))
    ]


_DIRECTIONS = 73
"""Points of the ellipse that are looked at: five degrees apart."""
_SHARES = (Scale.AUC, Scale.TPR)
_NOTHING = 1e-18
"""A variance that is zero but for rounding."""


def _at_limit(value: Floats) -> npt.NDArray[np.bool_]:
    return (value > 1 - 1e-12) | (value < 1e-12)


def _limited(
    found: Clustered, scale: Scale, ends: tuple[Floats, Floats], tail: float
) -> tuple[Floats, Floats]:
    """Give shares of 0 and 1 the exact bound for none or all of n groups: there is no spread."""
    if scale not in _SHARES:
        return ends
    counted = found.member_groups if scale is Scale.TPR else found.smaller_groups
    exact = tail ** (1 / np.maximum(counted, 1))
    top, bottom = found.value > 1 - 1e-12, found.value < 1e-12
    low = np.where(top, exact, np.where(bottom, 0.0, ends[0]))
    return low, np.where(bottom, 1 - exact, np.where(top, 1.0, ends[1]))


def _given(low: Floats, high: Floats, about: list[str]) -> Interval:
    without = np.array([one.startswith("none") for one in about], dtype=bool)
    return Interval(np.where(without, np.nan, low), np.where(without, np.nan, high), about)


def _ends(value: Floats, half: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """Return both ends, from the half width of the interval on the number's own scale."""
    if scale is Scale.AUC:
        middle, wide = np.log(value / (1 - value)), half / (value * (1 - value))
        return 1 / (1 + np.exp(-(middle - wide))), 1 / (1 + np.exp(-(middle + wide)))
    if scale is Scale.SLOPE:
        return value - half, value + half
    if scale is Scale.TREND:
        middle, wide = np.arctanh(value), half / (1 - value**2)
        return np.tanh(middle - wide), np.tanh(middle + wide)
    extra = half**2 / (value * (1 - value))
    middle, wide = (value + extra / 2) / (1 + extra), np.sqrt(half**2 + extra**2 / 4)
    return middle - wide / (1 + extra), middle + wide / (1 + extra)


def _abouts(found: Clustered, steep_groups: npt.NDArray[np.int64] | int) -> list[str]:
    """Say of each number what its interval speaks of, or why there is none.

    Args:
        found: the numbers.
        steep_groups: fewer groups than this support no interval of an AUC beyond `STEEP`.
    """
    there = np.isfinite(found.value)
    value = np.where(there, found.value, 0.5)
    # A perfect order has the exact bound, which holds for few groups, too.
    steep = (np.abs(value - 0.5) + 0.5 > STEEP) & ~_at_limit(value)
    steep &= found.smaller_groups < steep_groups
    # Most numbers of a table say the same, so each sentence is made once.
    said = cache(_about)
    groups = np.minimum(found.member_groups, TRUSTED_GROUPS).tolist()
    each = (there.tolist(), found.smaller_groups.tolist(), steep.tolist(), found.seeds.tolist())
    return [said(*one) for one in zip(*each, groups, strict=True)]


def _about(there: bool, fewest: int, steep: bool, seeds: int, members: int) -> str:
    """Say what an interval speaks of, or why there is none.

    Args:
        there: whether there is a value.
        fewest: groups of the side that has fewer.
        steep: whether the value is too close to an end for so few.
        seeds: behind the value.
        members: groups of members, `TRUSTED_GROUPS` or fewer.
    """
    if not there:
        return "none: no value"
    if fewest < LEAST_GROUPS:
        return f"none: {fewest} {'group' if fewest == 1 else 'groups'} on one side"
    if steep:
        return f"none: an AUC beyond {STEEP} of {fewest} groups"
    about = "this model" if seeds == 1 else f"these {seeds} models"
    if seeds >= FROM_SEEDS:
        about = "any seed"
    return (
        f"{about}; not to be trusted: {members} groups of members"
        if (members < TRUSTED_GROUPS)
        else about
    )
