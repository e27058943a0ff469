"""From a variance to the two ends: on the scale that keeps them inside what is possible.

An AUC by `_auc_ends`, a TPR by Wilson's (1927) interval for a share, Somers' D on Fisher's scale, a
slope untransformed; all with Student's t. The difference of two AUCs has the largest and the least
within an ellipse of both. Where simulation (docs/statistics.md) shows that no interval of these
covers, there is none, and a sentence reports that.
"""

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.intervals.clustered import FROM_SEEDS, Clustered
from analysis.intervals.influence import Floats, expected_variance

LEAST_GROUPS = 3
"""Groups a side below which there is no interval: with two it covers 83 %."""
TRUSTED_GROUPS = 15
"""Below this many groups of members, an interval is shown as not to be trusted."""
ALIKE = "the rows do not differ"
"""Why a number without any variance has no interval."""


class IntervalMethod(Enum):
    """The scale of a number, which determines its interval."""

    AUC = "score"
    TPR = "Wilson"
    TREND = "Fisher"
    SLOPE = "plain"


class Interval(NamedTuple):
    """K intervals, each with its scope and caution."""

    low: Floats
    high: Floats
    about: list[str]
    """`any seed`, `this model`, `these 2 models`; or `none: ` and why."""


def find_interval(clustered: Clustered, scale: IntervalMethod, *, confidence: float) -> Interval:
    """Return the intervals of K numbers.

    Args:
        clustered: values, variances, groups.
        scale: of what kind the numbers are.
        confidence: requested coverage.
    """
    low, high = _limited_ends(clustered, scale, (1 - confidence) / 2)
    about = _interval_scopes(clustered)
    limit = _is_at_limit(clustered.value) & (scale in _SHARES)
    flat = np.isfinite(clustered.value) & (clustered.variance <= _NOTHING) & ~limit
    beyond = np.isfinite(clustered.value) & ~(np.isfinite(low) & np.isfinite(high))
    for reason, mask in ((ALIKE, flat), ("beyond what is possible", beyond)):
        for k in np.flatnonzero(mask):
            if not about[k].startswith("none"):
                about[k] = f"none: {reason}"
    return _omit_ends(low, high, about)


def find_difference(
    difference: Clustered, first_auc: Clustered, second_auc: Clustered, *, confidence: float
) -> Interval:
    """Return the intervals of K differences of AUC, `first_auc` minus `second_auc`.

    The two AUCs are in an ellipse of their correlated logits that reaches to the ends
    of each AUC's own interval; the ends are the least and the largest difference in it. A
    difference of equal scores is 0 and has no width. Where one AUC is 0 or 1 the two exact ends are
    put together (Zou 2007).

    Args:
        difference: the differences: values, variances (what both share has cancelled), groups.
        first_auc, second_auc: the AUCs.
        confidence: requested coverage.
    """
    first, second, ends = _ellipse_pairs(difference, first_auc, second_auc, confidence)
    (left, right), (other_left, other_right) = ends
    below = np.hypot(first_auc.value - left, other_right - second_auc.value)
    above = np.hypot(right - first_auc.value, second_auc.value - other_left)
    exact = difference.value - below, difference.value + above
    return _widest_interval(difference, first_auc, second_auc, first - second, exact)


def find_relative_change(
    change: Clustered, first_auc: Clustered, second_auc: Clustered, *, confidence: float
) -> Interval:
    """Return the intervals of K relative changes of AUC, (first_auc - second_auc) / second_auc.

    As `find_difference`: the least and the largest relative change of any two AUCs in the ellipse,
    so that neither end is below -1. If one AUC is 0 or 1, the ends are those of the two exact
    intervals that are farthest apart; if the other's reaches 0, there is no upper end.

    Args:
        change: the differences: variances (what both share has cancelled), groups.
        first_auc, second_auc: the AUCs.
        confidence: requested coverage.
    """
    first, second, ends = _ellipse_pairs(change, first_auc, second_auc, confidence)
    (left, right), (other_left, other_right) = ends
    with np.errstate(invalid="ignore", divide="ignore"):
        exact = left / other_right - 1, right / other_left - 1
        return _widest_interval(change, first_auc, second_auc, first / second - 1, exact)


def _widest_interval(
    difference: Clustered,
    first: Clustered,
    second: Clustered,
    pairs: Floats,
    exact: tuple[Floats, Floats],
) -> Interval:
    """Return the least and the largest number of pairs in the ellipse.

    Args:
        difference: the differences.
        first, second: the AUCs.
        pairs: the value of each pair, [directions, K].
        exact: the ends if one AUC is 0 or 1.
    """
    limit = _is_at_limit(first.value) | _is_at_limit(second.value)
    low, high = (
        np.where(limit, end, of_pairs)
        for end, of_pairs in zip(exact, (pairs.min(axis=0), pairs.max(axis=0)), strict=True)
    )
    return _omit_ends(low, high, _interval_scopes(difference))


def _ellipse_pairs(
    difference: Clustered, first_auc: Clustered, second_auc: Clustered, confidence: float
) -> tuple[Floats, Floats, list[tuple[Floats, Floats]]]:
    """Return pairs of AUCs on the ellipse, [directions, K] each, and the ends of each AUC."""
    product = 2 * np.sqrt(first_auc.variance * second_auc.variance)
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = (first_auc.variance + second_auc.variance - difference.variance) / product
    shared = np.where(product > _NOTHING, np.clip(shared, -1.0, 1.0), 0.0)
    shared = np.where(difference.variance > _NOTHING, shared, 1.0)
    turn = np.linspace(0, 2 * np.pi, _DIRECTIONS)[:, None]
    first = np.cos(turn)
    second = shared * first + np.sqrt(1 - shared**2) * np.sin(turn)
    ends, moved = [], []
    for auc, way in ((first_auc, first), (second_auc, second)):
        # The rows of the difference are the rows of both.
        alone = auc._replace(freedom=difference.freedom)
        low, high = _limited_ends(alone, IntervalMethod.AUC, (1 - confidence) / 2)
        ends.append((low, high))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            middle, left, right = (np.log(end / (1 - end)) for end in (auc.value, low, high))
            step = np.where(way > 0, right - middle, middle - left)
            moved.append(1 / (1 + np.exp(-middle - way * step)))
    return moved[0], moved[1], ends


_DIRECTIONS = 73
"""Points of the ellipse that are looked at: five degrees apart."""
_SHARES = (IntervalMethod.AUC, IntervalMethod.TPR)
_NOTHING = 1e-18
"""A variance that is zero but for rounding."""


def _is_at_limit(value: Floats) -> npt.NDArray[np.bool_]:
    return (value > 1 - 1e-12) | (value < 1e-12)


def _limited_ends(
    clustered: Clustered, scale: IntervalMethod, tail: float
) -> tuple[Floats, Floats]:
    """Return the ends; shares of 0 and 1 have the exact bound for none or all of n groups."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ends = _student_ends(clustered, scale, tail)
    if scale not in _SHARES:
        return ends
    # Clopper and Pearson 1934.
    counted = clustered.member_groups if scale is IntervalMethod.TPR else clustered.smaller_groups
    exact = tail ** (1 / np.maximum(counted, 1))
    top, bottom = clustered.value > 1 - 1e-12, clustered.value < 1e-12
    low = np.where(top, exact, np.where(bottom, 0.0, ends[0]))
    return low, np.where(bottom, 1 - exact, np.where(top, 1.0, ends[1]))


def _omit_ends(low: Floats, high: Floats, about: list[str]) -> Interval:
    without = np.array([text.startswith("none") for text in about], dtype=bool)
    return Interval(np.where(without, np.nan, low), np.where(without, np.nan, high), about)


def _student_ends(
    clustered: Clustered, scale: IntervalMethod, tail: float
) -> tuple[Floats, Floats]:
    """Return both ends, as many standard errors away as Student's t has."""
    from scipy.special import ndtri, stdtrit

    student = stdtrit(np.maximum(clustered.freedom, 1.0), 1 - tail)
    if scale is IntervalMethod.AUC:
        return _auc_ends(clustered, student, ndtri(1 - tail))
    value, half = clustered.value, student * np.sqrt(clustered.variance)
    if scale is IntervalMethod.SLOPE:
        return value - half, value + half
    if scale is IntervalMethod.TREND:
        middle, wide = np.arctanh(value), half / (1 - value**2)
        return np.tanh(middle - wide), np.tanh(middle + wide)
    extra = half**2 / (value * (1 - value))
    middle, wide = (value + extra / 2) / (1 + extra), np.sqrt(half**2 + extra**2 / 4)
    return middle - wide / (1 + extra), middle + wide / (1 + extra)


def _auc_ends(clustered: Clustered, student: Floats, normal: float) -> tuple[Floats, Floats]:
    """Return the ends of AUCs: those whose own variance just reaches to the value.

    A score interval, as Wilson 1927 has it for a share and Newcombe 2006 for an AUC. How the
    variance moves with the AUC is known but for a factor, the effective number of rows, which the
    variance that was found gives. Towards 0.5 the AUC moves as Newcombe's fifth method has it, with
    no more rows, in effect, than there are: few rows are on the wrong side of a high AUC, and
    if none of these rare rows is drawn the rows show too little spread. That variance is expected,
    not found, so its quantile is the normal one. Away from 0.5, where the variance falls, it moves
    as that of two normal distributions.
    """
    # From 0.5 upwards; an AUC below is that of the turned scores.
    upper = np.maximum(clustered.value, 1 - clustered.value)
    scaled = student**2 * clustered.variance
    short = 1.0 if clustered.shortfall is None else clustered.shortfall
    near = np.maximum(scaled, normal**2 * clustered.variance * short)
    towards = _score_end(upper, near, expected_variance, np.zeros_like(upper))
    away = _score_end(upper, scaled, _normal_variance, np.ones_like(upper))
    turned = clustered.value < 0.5
    return np.where(turned, 1 - away, towards), np.where(turned, 1 - towards, away)


def _score_end(
    value: Floats, scaled: Floats, variance_of: Callable[[Floats], Floats], limit: Floats
) -> Floats:
    """Return the end at which (value - end)² equals its variance, by halving; NaN without a value.

    Args:
        value: the AUCs.
        scaled: their variance times the squared quantile.
        variance_of: how the variance moves with the AUC, but for a factor.
        limit: 0 or 1, the end's side.
    """
    factor = scaled / variance_of(value)
    inside, outside = value.copy(), np.where(np.isfinite(factor), limit, np.nan)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        reached = (value - middle) ** 2 <= factor * variance_of(middle)
        inside, outside = np.where(reached, middle, inside), np.where(reached, outside, middle)
    return outside


_HALVINGS = 45
"""Of an interval of 1: the rest is below the last bit of a number near 1."""


def _normal_variance(auc: Floats) -> Floats:
    """Return the variance of an AUC of two normal distributions alike, but for a factor.

    P(X > Y and X > Y') - AUC², the first by the function of Owen 1956.
    """
    from scipy.special import ndtri, owens_t

    return np.maximum(auc * (1 - auc) - 2 * owens_t(ndtri(auc), 1 / np.sqrt(3)), 0.0)


def _interval_scopes(clustered: Clustered) -> list[str]:
    """Return the scope of each number's interval, or the reason for its absence."""
    # Most numbers of a table have the same sentence, so each is made once.
    groups = np.minimum(clustered.member_groups, TRUSTED_GROUPS)
    facts = (np.isfinite(clustered.value), clustered.smaller_groups, clustered.seeds, groups)
    return [_interval_scope(*each) for each in zip(*(fact.tolist() for fact in facts), strict=True)]


@cache
def _interval_scope(measured: bool, fewest: int, seeds: int, members: int) -> str:
    """Return the scope of an interval, or the reason for its absence.

    Args:
        measured: whether there is a value.
        fewest: groups of the side that has fewer.
        seeds: number of seeds that the value is based on.
        members: groups of members, `TRUSTED_GROUPS` or fewer.
    """
    if not measured:
        return "none: no value"
    if fewest < LEAST_GROUPS:
        return f"none: {fewest} {'group' if fewest == 1 else 'groups'} on one side"
    about = "this model" if seeds == 1 else f"these {seeds} models"
    if seeds >= FROM_SEEDS:
        about = "any seed"
    few = members < TRUSTED_GROUPS
    return f"{about}; not to be trusted: {members} groups of members" if few else about
