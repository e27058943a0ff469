"""Intervals that hold together: the quantile of the largest of several correlated t statistics.

Where the best of several is shown, its own interval is too narrow: it was picked for being large.
A band holds all of them at once (Hothorn et al. 2008); how alike they are enters by the
correlation of their influence values, so 30 detectors that say the same cost little more than one.
"""

import numpy as np

from analysis.metrics import Floats
from inject.keyed import Stream, generator, item_key

_DRAWS = 10_000


def max_t_quantile(influence: Floats, freedom: float, *, confidence: float) -> float:
    """Return how many standard errors hold all numbers with the confidence asked for.

    Args:
        influence: of each number by group, [numbers, groups]; numbers without any are left out.
        freedom: the fewest degrees of freedom of any.
        confidence: that no number lies outside.
    """
    sums = np.square(influence).sum(axis=1)
    scaled = influence[sums > 0] / np.sqrt(sums[sums > 0])[:, None]
    random = generator(0, Stream.BOOTSTRAP, item_key("max t"))
    # Normal draws of the groups give the numbers their correlation, without a matrix to factor.
    draws = random.normal(size=(_DRAWS, scaled.shape[1])) @ scaled.T
    chance = np.sqrt(random.chisquare(max(freedom, 1.0), size=_DRAWS) / max(freedom, 1.0))
    largest = np.abs(draws).max(axis=1, initial=0.0) / chance
    return float(np.quantile(largest, confidence))
