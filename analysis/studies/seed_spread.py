"""The standard deviation of an arm's true AUC over seeds: the observed one without what rows make.

    deviation² = V - W

*V* is the variance of the seeds' AUCs, *W* the mean over seeds of the variance that the rows make
within one (influence values, DeLong et al. 1988). The interval is an approximation: the χ² interval
of V, with S - 1 degrees of freedom, shifted by W as if W were known, since W comes from hundreds of
rows and V from S seeds; ends below 0 are 0. Its coverage is in `docs/statistics.md`.
"""

from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.influence import Floats
from analysis.studies.contrasts import NOT_ANSWERED

ANSWERED = "answered"
_PLANNED = 0.8
"""Confidence of the upper limit from which seeds of later studies are planned."""


class Spread(NamedTuple):
    """A standard deviation with its interval."""

    value: float = nan
    low: float = nan
    high: float = nan
    upper_80: float = nan
    """Upper limit with 80 % confidence, one-sided."""
    note: str = ""
    """Why the interval is missing; empty for one with an interval."""

    def verdict(self, limit: float) -> str:
        """Return whether the upper end is below a limit."""
        return ANSWERED if self.high < limit else NOT_ANSWERED


def seed_spread(auc: Floats, variance: Floats, *, confidence: float) -> Spread:
    """Return the standard deviation of the true AUC over seeds.

    Args:
        auc: of each seed.
        variance: of each because of its rows.
        confidence: requested coverage of the two-sided interval.
    """
    from scipy.special import chdtri

    count = len(auc)
    if count < FROM_SEEDS:
        return Spread(note=f"fewer than {FROM_SEEDS} seeds: {count}")
    total, rows = float(np.var(auc, ddof=1)), float(np.mean(variance))
    tail = (1 - confidence) / 2
    squares = (count - 1) * total
    # The argument of `chdtri` is the upper tail.
    ends = [squares / float(chdtri(count - 1, upper)) for upper in (tail, 1 - tail, _PLANNED)]
    value, low, high, planned = (sqrt(max(end - rows, 0.0)) for end in (total, *ends))
    return Spread(value, low, high, planned)
