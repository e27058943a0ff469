"""Where a fitted line reaches a level: the interval of Fieller 1954, whose ends may be unbounded.

A place x belongs to the interval if the line's distance from the level at x is at most
t standard errors of it: (a + b x - level)² <= t² (Vaa + 2 x Vab + x² Vbb). Where the slope is
not distinguishable from zero the places are all of the axis, or all but a segment of it.
"""

from collections.abc import Callable
from math import inf, isfinite, sqrt
from typing import NamedTuple

from analysis.intervals.influence import Floats

Written = Callable[[float], str]


Stretch = tuple[float, float]
"""The places from one end to the other; infinite if there is no end."""


class ThresholdCrossing(NamedTuple):
    """Where a line reaches a level."""

    value: float
    """Infinite if a line that does not rise is below the level; `start` if it is above."""
    places: tuple[Stretch, ...]
    """The confidence set: none, one or two segments of the axis from `start` on."""


def fieller(
    off: float, slope: float, covariance: Floats, quantile: float, *, start: float = 0.0
) -> ThresholdCrossing:
    """Return the x at which the line `off + slope x` reaches 0, from `start` on.

    Args:
        off: the line's intercept, minus the level to be reached.
        slope: of the line.
        covariance: of both, [2, 2].
        quantile: how many standard errors are allowed.
        start: the least place that has a meaning.
    """
    squared = quantile**2
    # c2 x² + c1 x + c0 <= 0 holds within the set.
    c2 = slope**2 - squared * float(covariance[1, 1])
    c1 = 2 * (off * slope - squared * float(covariance[0, 1]))
    c0 = off**2 - squared * float(covariance[0, 0])
    ranges = [(max(low, start), high) for low, high in _solution(c2, c1, c0) if high >= start]
    if slope == 0:
        value = inf if off < 0 else start
    else:
        value = -off / slope
        if value < start or (slope < 0 and off < 0):
            value = start if off + slope * start >= 0 else inf
    return ThresholdCrossing(value, tuple(ranges))


def _solution(c2: float, c1: float, c0: float) -> list[Stretch]:
    """Return the x with c2 x² + c1 x + c0 <= 0."""
    under = c1**2 - 4 * c2 * c0
    if c2 == 0:
        if c1 == 0:
            return [(-inf, inf)] if c0 <= 0 else []
        return [(-inf, -c0 / c1)] if c1 > 0 else [(-c0 / c1, inf)]
    if under < 0:
        return [] if c2 > 0 else [(-inf, inf)]
    root = sqrt(under)
    ends = sorted(((-c1 - root) / (2 * c2), (-c1 + root) / (2 * c2)))
    if c2 > 0:
        return [(ends[0], ends[1])]
    return [(-inf, ends[0]), (ends[1], inf)]


def reach_text(
    reach: ThresholdCrossing, *, smallest: float, largest: float, written: Written
) -> str:
    """Return the place and its interval in words; beyond the data, no number is given.

    Args:
        reach: in the unit that is shown.
        smallest: the smallest place that was measured.
        largest: the largest.
        written: how a place is written.
    """

    def end(place: float) -> str:
        if place > largest * (1 + 1e-9):
            return f"> {written(largest)}"
        return f"< {written(smallest)}" if place < smallest * (1 - 1e-9) else written(place)

    if not reach.places:
        # The whole set is before the start: the level is already reached there, or never.
        return "never" if reach.value == inf else end(reach.value)
    low, high = reach.places[0][0], reach.places[-1][1]
    if len(reach.places) == 2:
        # The slope's sign is unknown: all places but a segment between.
        before, after = reach.places[0][1], reach.places[1][0]
        first = end(before) if before < smallest * (1 - 1e-9) else f"≤ {end(before)}"
        last = end(after) if after > largest * (1 + 1e-9) else f"≥ {end(after)}"
        return f"{end(reach.value)} [{first} or {last}]"
    if low < smallest * (1 - 1e-9) and not isfinite(high):
        return f"{end(reach.value)} [any]"
    ends = end(low), end(high)
    if ends[0] == ends[1] == end(reach.value):
        return ends[0]
    return f"{end(reach.value)} [{ends[0]}, {ends[1]}]"
