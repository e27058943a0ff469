"""The base model as a control variate: what the luck of the pool adds to a number, taken out.

    adjusted = number - weight * (base - centre),    weight = covariance / variance

The base model saw no member, so its number (an AUC whose expectation is 0.5, a Somers' D whose
expectation is 0) differs from the centre by nothing but which rows became members. The same rows
are in the trained model's number. Covariance and variance come from the influence values that the
two share, group by group. The plain difference (a weight of 1) has often the larger variance.
"""

import numpy as np

from analysis.intervals.clustered import Part, Seeds, cluster
from analysis.metrics import Floats


def control_weights(seeds: Seeds, base: Seeds) -> Floats:
    """Return the weight of the base model's deviation in each of K numbers.

    Args:
        seeds: of the trained models.
        base: of the base model on the same rows, seed by seed and dataset by dataset.

    Returns:
        [K]; NaN where the base model's number does not vary.
    """
    one, other = cluster(seeds).influence, cluster(base).influence
    with np.errstate(invalid="ignore", divide="ignore"):
        return (one * other).sum(axis=1) / np.square(other).sum(axis=1)


def adjust(seeds: Seeds, base: Seeds, weights: Floats, *, centre: float) -> list[dict[str, Part]]:
    """Return the adjusted numbers with their influence values.

    Args:
        seeds, base: as for `control_weights`.
        weights: what it returned.
        centre: what the base model's number is expected to be.
    """
    return [
        {name: _adjusted(part, others[name], weights, centre) for name, part in parts.items()}
        for parts, others in zip(seeds, base, strict=True)
    ]


def _adjusted(part: Part, base: Part, weights: Floats, centre: float) -> Part:
    mine, theirs = part.sample, base.sample
    # The weight was found in the same rows, which costs one degree of freedom on either side.
    cost = np.sqrt(mine.groups / np.maximum(mine.groups - 1, 1))
    sample = mine._replace(
        value=mine.value - weights * (theirs.value - centre),
        influence=(mine.influence - weights[:, None] * theirs.influence) * cost[:, :, None],
        freedom=np.maximum(mine.freedom - 1, 1.0),
    )
    return part._replace(sample=sample)
