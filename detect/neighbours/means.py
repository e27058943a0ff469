"""Neighbours → the mean log-probability of each under the target, in batches over all texts."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from detect.neighbours.neighbours import NeighbourMeans, Neighbours

UNSCORED = "no neighbour of it could be scored"


def neighbour_means(
    target: Any, neighbours: Sequence[Neighbours], policy: Any, **how: Any
) -> list[NeighbourMeans]:
    """Return the means of each text's neighbours, in the order given.

    Args:
        target: a `detect.engine.target.Target`.
        neighbours: of each text.
        policy: a `detect.policy.ScoringPolicy`.
        how: further arguments of `detect.engine.forward_pass.token_statistics`.
    """
    from detect.engine.forward_pass import token_statistics

    texts = [text for one in neighbours for text in one.texts]
    means = [
        float(np.mean(found.log_probability, dtype=np.float64)) if len(found) else None
        for found in token_statistics(target, texts, policy, **how)
    ]
    stops = list(accumulate(len(one.texts) for one in neighbours))
    found = []
    for one, stop in zip(neighbours, stops, strict=True):
        own = tuple(mean for mean in means[stop - len(one.texts) : stop] if mean is not None)
        reason = one.reason or (None if own else UNSCORED)
        found.append(NeighbourMeans(means=own, reason=reason))
    return found
