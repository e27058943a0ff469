"""Where an unlearned model stands between the retrained model and the original.

With u, r and o one measure of the unlearned, the retrained and the original model, the position is
(u - r) / (o - r): 0 at the retrained model, 1 at the original, -1 at the original's mirror image
beyond the retrained one. All three are found on the same rows, so their influence values give the
covariance of (u - r, o - r), seeds included (`analysis.intervals.joint`), and the interval of
the ratio is Fieller's. Where the original and the retrained model are not told apart there is
nothing to stand between, and no position.
"""

from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import numpy as np

from analysis.intervals.clustered import Part
from analysis.intervals.ends import LEAST_GROUPS, TRUSTED_GROUPS
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.fieller import fieller
from analysis.intervals.joint import join_seeds
from analysis.intervals.numbers import Numbers
from analysis.metrics import Floats

ALL_OF_IT = 0


class Position(NamedTuple):
    """Where a model stands between two others, and the measure of all three."""

    estimate: Estimate
    """NaN if the original and the retrained model have one value; its groups are those of the
    smaller side."""
    unlearned: float = nan
    retrained: float = nan
    original: float = nan


def find_position(
    unlearned: Numbers, retrained: Numbers, original: Numbers, *, confidence: float
) -> Position:
    """Return where the unlearned model stands.

    Args:
        unlearned, retrained, original: one measure of the same rows under each, cell 0.
        confidence: coverage asked for.
    """
    from scipy.special import stdtrit

    several = [unlearned, retrained, original]
    values, influence = _by_seed(several)
    if not len(values):
        return Position(no_estimate("no value"))
    u, r, o = values.mean(axis=0).tolist()
    groups = _groups(several)
    value = (u - r) / (o - r) if o != r else nan

    def position(low: float, high: float, about: str) -> Position:
        behind = {"groups": groups, "seeds": len(values)}
        return Position(Estimate(value, low, high, about, **behind), u, r, o)

    if groups < LEAST_GROUPS:
        return position(nan, nan, f"none: {groups} groups")
    across = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    joint = join_seeds(values @ across.T, np.einsum("jk,skg->sjg", across, influence))
    quantile = float(stdtrit(max(float(joint.freedom.min()), 1.0), (1 + confidence) / 2))
    # The line (u - r) + (r - o) x reaches 0 at the position.
    reach = fieller(u - r, r - o, joint.covariance, 0.0, quantile, start=-np.inf)
    about = "these models"
    if groups < TRUSTED_GROUPS:
        about += f"; not to be trusted: {groups} groups"
    if not reach.places and (o - r) ** 2 > quantile**2 * joint.covariance[1, 1]:
        # The models say the same of every text, so both roots are one, but for rounding.
        return position(value, value, about)
    if len(reach.places) != 1 or not all(np.isfinite(reach.places[0])):
        return position(nan, nan, "none: the original and the retrained model are not told apart")
    return position(*reach.places[0], about)


def find_gap(one: Numbers, other: Numbers, *, confidence: float) -> Estimate:
    """Return `one - other` of the same rows, cell 0; its groups are those of the smaller side."""
    gap = one - other
    cluster = gap.clustered()
    if cluster is None:
        return no_estimate("no value")
    estimate = gap.estimates(confidence=confidence)[0]
    return estimate._replace(groups=int(cluster.smaller_groups[0]))


def _by_seed(several: Sequence[Numbers]) -> tuple[Floats, Floats]:
    """Return one number of each model, datasets pooled, over the seeds that have all of them.

    Returns:
        Values [seeds, models], influence [seeds, models, groups of all datasets].
    """
    values, influences = [], []
    for parts in zip(*(numbers.seeds for numbers in several), strict=True):
        names = [name for name in parts[0] if all(name in one for one in parts)]
        if not names:
            continue
        pooled = [_pooled([one[name] for name in names]) for one in parts]
        values.append([value for value, _ in pooled])
        influences.append({name: [one[1][at] for one in pooled] for at, name in enumerate(names)})
    # A dataset that one seed lacks moves nothing there.
    sizes = {name: len(one[0]) for moved in influences for name, one in moved.items()}
    wide = [
        np.concatenate(
            [
                np.stack(moved.get(name, [np.zeros(size)] * len(several)))
                for name, size in sizes.items()
            ],
            axis=1,
        )
        for moved in influences
    ]
    if not values:
        return np.zeros((0, len(several))), np.zeros((0, len(several), 1))
    return np.array(values), np.stack(wide)


def _pooled(parts: Sequence[Part]) -> tuple[float, list[Floats]]:
    weights = np.array([part.weight[ALL_OF_IT] for part in parts])
    shares = weights / weights.sum()
    value = float(
        sum(s * part.sample.value[ALL_OF_IT] for s, part in zip(shares, parts, strict=True))
    )
    moved = [
        s * part.sample.influence[:, ALL_OF_IT].sum(axis=0)
        for s, part in zip(shares, parts, strict=True)
    ]
    return value, moved


def _groups(several: Sequence[Numbers]) -> int:
    """Return the groups of the smaller side, over datasets, in the seed that has fewest."""
    counts = [
        int(sum(part.sample.groups[:, ALL_OF_IT].min() for part in seed.values()))
        for numbers in several
        for seed in numbers.seeds
        if seed
    ]
    return min(counts, default=0)
