"""Comparisons of arms within each seed, and Student's t over the seeds.

All arms of a seed share rows, sides and draws, so an effect is computed within the seed and the
seed is the unit. The interval is that of a mean of independent seeds, widened for a family of
comparisons (Bonferroni). Its coverage is in `docs/statistics.md`.

The dose at which AUC reaches 0.75 is read from probit(AUC) = a · copies^γ, fitted to the mean AUCs
over seeds by weighted least squares: 0 copies give AUC 0.5, and a line in log2(copies) is off by a
quarter of a doubling where γ is 0.8. Its seeds are the pseudo-values of the jackknife (Tukey 1958)
that leaves out one seed at a time, since a curve through one seed's few members per dose is biased.
"""

from math import inf, isfinite, log2, nan, sqrt
from typing import NamedTuple

import numpy as np

from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.ends import ALIKE
from analysis.intervals.influence import Counts, Floats

MOVES, SMALL, BOTH, OPEN = "moves AUC", "does not matter here", "both", "not told"
NOT_ANSWERED = "not answered"
"""The verdict without an interval."""
REPORTED = 0.7
"""The AUC from which a change of probits is reported."""
REACHED = 0.75
_SATURATED = 0.98
"""Doses with a higher mean AUC are left out of the curve."""
_POWERS = (0.05, 4.0)
"""Values of γ."""
_DOSES = (1, 32)
"""The doses between which AUC must reach 0.75."""


class Effect(NamedTuple):
    """A comparison with its simultaneous interval."""

    value: float = nan
    low: float = nan
    high: float = nan
    note: str = ""
    """Why the interval is missing; empty for one with an interval."""

    def verdict(self, margin: float) -> str:
        """Return the verdict that the interval supports.

        Args:
            margin: the smallest effect that matters.
        """
        if self.note:
            return NOT_ANSWERED
        moves = not self.low <= 0 <= self.high
        small = -margin <= self.low and self.high <= margin
        return {(True, True): BOTH, (True, False): MOVES, (False, True): SMALL}.get(
            (moves, small), OPEN
        )


def effect_over_seeds(effects: Floats, *, confidence: float, family: int = 1) -> Effect:
    """Return the mean of the seeds' effects with Student's interval.

    Args:
        effects: of each seed.
        confidence: that all intervals of the family hold.
        family: number of comparisons.
    """
    from scipy.special import stdtrit

    count = len(effects)
    value = float(np.mean(effects)) if count else nan
    if count < FROM_SEEDS:
        return Effect(value, note=f"fewer than {FROM_SEEDS} seeds: {count}")
    error = float(np.std(effects, ddof=1)) / sqrt(count)
    if error <= 1e-12:
        return Effect(value, note=ALIKE)
    half = float(stdtrit(count - 1, 1 - (1 - confidence) / (2 * family))) * error
    return Effect(value, value - half, value + half)


def from_reported(effect: Effect) -> Effect:
    """Return an effect on probits as the change of an AUC of 0.70."""
    from scipy.special import ndtr, ndtri

    value, low, high = (float(ndtr(ndtri(REPORTED) + end)) - REPORTED for end in effect[:3])
    return Effect(value, low, high, effect.note)


def probits(auc: Floats, members: Counts, nonmembers: Counts) -> Floats:
    """Return the probits of AUCs, kept half a row of the smaller side from 0 and 1."""
    from scipy.special import ndtri

    least = 0.5 / np.maximum(np.minimum(members, nonmembers), 1)
    return ndtri(np.clip(auc, least, 1 - least))


def dose_by_seed(auc: Floats, variance: Floats, copies: Floats) -> tuple[Floats, str]:
    """Return the pseudo-values of the log2 dose at which AUC reaches 0.75.

    Args:
        auc: by seed and dose, [S, K]; NaN if a seed has no member of a dose.
        variance: of each because of its rows.
        copies: of the doses, [K], positive.

    Returns:
        The values, [S], and why there are none: a bound.
    """
    count = len(auc)
    dose_of_all = _reached(auc, variance, copies)
    jackknife = [
        _reached(np.delete(auc, s, axis=0), np.delete(variance, s, axis=0), copies)
        for s in range(count)
        if count > 1
    ] or [dose_of_all]
    for dose in (dose_of_all, *jackknife):
        if not isfinite(dose):
            ends = {inf: f"more than {_DOSES[1]} copies", -inf: f"less than {_DOSES[0]} copy"}
            return np.full(count, nan), ends.get(dose, "fewer than two doses below AUC 0.98")
    return count * dose_of_all - (count - 1) * np.array(jackknife), ""


def _reached(auc: Floats, variance: Floats, copies: Floats) -> float:
    """Return the log2 dose of several seeds; infinite beyond 1 to 32, NaN without a curve."""
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtri
    from scipy.stats import norm

    present = np.isfinite(auc)
    seeds = present.sum(axis=0)
    mean = np.where(present, auc, 0.0).sum(axis=0) / np.maximum(seeds, 1)
    error = np.where(present, variance, 0.0).sum(axis=0) / np.maximum(seeds, 1) ** 2
    used = (seeds > 0) & (mean < _SATURATED) & (mean > 1 - _SATURATED) & (error > 0)
    if used.sum() < 2:
        return nan
    probit, used_copies = ndtri(mean[used]), copies[used]
    weight = norm.pdf(probit) ** 2 / error[used]

    def scale(power: float) -> float:
        return float(np.average(probit * used_copies**power, weights=weight)) / float(
            np.average(used_copies ** (2 * power), weights=weight)
        )

    def misfit(power: float) -> float:
        return float(weight @ (probit - scale(power) * used_copies**power) ** 2)

    power = float(minimize_scalar(misfit, bounds=_POWERS, method="bounded").x)
    if scale(power) <= 0:
        return inf
    dose = log2(float(ndtri(REACHED)) / scale(power)) / power
    low, high = map(log2, _DOSES)
    return dose if low <= dose <= high else (inf if dose > high else -inf)
