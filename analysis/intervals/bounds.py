"""From a variance to the two ends: on the scale that keeps them inside what is possible.

An AUC on the logit scale, a TPR as Wilson 1927 has it for a share, Somers' D on Fisher's scale, a
difference as it stands; all with Student's t. Where simulation (docs/statistics.md) shows that no
interval of these covers, there is none, and a sentence says so.
"""

from enum import Enum
from typing import NamedTuple

import numpy as np

from analysis.intervals.clustered import FROM_SEEDS, Clustered
from analysis.metrics import Floats

LEAST_GROUPS = 3
"""Groups a side below which there is no interval: with two it covers 83 %."""
TRUSTED_GROUPS = 15
"""Groups of members below which an interval is shown and said not to be trusted."""
STEEP = 0.95
"""An AUC beyond it, of grouped rows and fewer than `TRUSTED_GROUPS` groups, has no interval."""


class Scale(Enum):
    """How the two ends are found."""

    AUC = "logit"
    TPR = "Wilson"
    TREND = "Fisher"
    DIFFERENCE = "plain"


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
    grouped: bool = False,
    quantile: Floats | float | None = None,
) -> Interval:
    """Return the intervals of K numbers.

    Args:
        found: values, variances, groups.
        scale: of what kind the numbers are.
        confidence: coverage asked for.
        grouped: whether some group has several rows.
        quantile: of how many standard errors half an interval is; Student's t where None.
    """
    from scipy.stats import t

    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        student = t.ppf(1 - tail, np.maximum(found.freedom, 1.0))
        half = (student if quantile is None else quantile) * np.sqrt(found.variance)
        low, high = _ends(found.value, half, scale)
    # Where all rows agree there is no spread to see: the exact bound for all or none of n groups.
    counted = found.member_groups if scale is Scale.TPR else found.smaller_groups
    exact = tail ** (1 / np.maximum(counted, 1))
    limited = scale in (Scale.AUC, Scale.TPR)
    top, bottom = limited & (found.value > 1 - 1e-12), limited & (found.value < 1e-12)
    low = np.where(top, exact, np.where(bottom, 0.0, low))
    high = np.where(bottom, 1 - exact, np.where(top, 1.0, high))
    about = [_about(found, k, scale, grouped=grouped) for k in range(len(found.value))]
    flat = np.isfinite(found.value) & (found.variance <= 1e-18) & ~(top | bottom)
    for k in np.flatnonzero(flat):
        if not about[k].startswith("none"):
            about[k] = "none: the rows do not differ"
    without = np.array([one.startswith("none") for one in about], dtype=bool)
    return Interval(np.where(without, np.nan, low), np.where(without, np.nan, high), about)


def _ends(value: Floats, half: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """Return both ends, from the half width of the interval on the number's own scale."""
    if scale is Scale.AUC:
        middle, wide = np.log(value / (1 - value)), half / (value * (1 - value))
        return 1 / (1 + np.exp(-(middle - wide))), 1 / (1 + np.exp(-(middle + wide)))
    if scale is Scale.TREND:
        middle, wide = np.arctanh(value), half / (1 - value**2)
        return np.tanh(middle - wide), np.tanh(middle + wide)
    if scale is Scale.TPR:
        extra = half**2 / (value * (1 - value))
        middle, wide = (value + extra / 2) / (1 + extra), np.sqrt(half**2 + extra**2 / 4)
        return middle - wide / (1 + extra), middle + wide / (1 + extra)
    return value - half, value + half


def _about(found: Clustered, k: int, scale: Scale, *, grouped: bool) -> str:
    if not np.isfinite(found.value[k]):
        return "none: no value"
    fewest = int(found.smaller_groups[k])
    if fewest < LEAST_GROUPS:
        return f"none: {fewest} {'group' if fewest == 1 else 'groups'} on one side"
    off = abs(float(found.value[k]) - 0.5) + 0.5
    if scale is Scale.AUC and grouped and fewest < TRUSTED_GROUPS and off > STEEP:
        return f"none: an AUC beyond {STEEP} of {fewest} groups"
    seeds = int(found.seeds[k])
    about = "this model" if seeds == 1 else f"these {seeds} models"
    if seeds >= FROM_SEEDS:
        about = "any seed"
    members = int(found.member_groups[k])
    return (
        f"{about}; not to be trusted: {members} groups of members"
        if (members < TRUSTED_GROUPS)
        else about
    )
