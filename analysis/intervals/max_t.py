"""Intervals that hold together: the quantile of the largest of several correlated t statistics.

Where the best of several is shown, its own interval is too narrow: it was picked for being large.
A band holds all of them at once (Hothorn et al. 2008); how alike they are enters by the
correlation of their influence values, so 30 detectors that say the same cost little more than one.
"""

from functools import lru_cache

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
    if not len(scaled):
        return 0.0
    # Draws with the numbers' correlation, by its symmetric root: that exists where the matrix is
    # singular, and is one and the same whatever eigenvectors a machine finds.
    values, vectors = np.linalg.eigh(scaled @ scaled.T)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    largest = np.abs(_normal(len(scaled)) @ root.T).max(axis=1) / _chance(max(freedom, 1.0))
    return float(np.quantile(largest, confidence))


@lru_cache(maxsize=8)
def _normal(numbers: int) -> Floats:
    return generator(0, Stream.BOOTSTRAP, item_key(f"max t {numbers}")).normal(
        size=(_DRAWS, numbers)
    )


@lru_cache(maxsize=64)
def _chance(freedom: float) -> Floats:
    random = generator(0, Stream.BOOTSTRAP, item_key("max t chance"))
    return np.sqrt(random.chisquare(freedom, size=_DRAWS) / freedom)
