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
from analysis.intervals.fieller import fieller
from analysis.intervals.joint import join_seeds
from analysis.intervals.numbers import Numbers
from analysis.metrics import Floats

ALL_OF_IT = 0


class Position(NamedTuple):
    """One measure of three models, or its difference between two of them."""

    unlearned: float
    retrained: float
    original: float
    value: float
    """NaN where the original and the retrained model have one value."""
    low: float
    high: float
    seeds: int
    groups: int
    """Groups of the smaller side."""
    note: str
    """Why there is no interval, or what it warns of; empty for neither."""


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
        return Position(nan, nan, nan, nan, nan, nan, 0, 0, "no value")
    u, r, o = values.mean(axis=0).tolist()
    groups = _groups(several)
    value = (u - r) / (o - r) if o != r else nan
    if groups < LEAST_GROUPS:
        return Position(u, r, o, value, nan, nan, len(values), groups, f"{groups} groups")
    across = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    joint = join_seeds(values @ across.T, np.einsum("jk,skg->sjg", across, influence))
    quantile = float(stdtrit(max(float(joint.freedom.min()), 1.0), (1 + confidence) / 2))
    # The line (u - r) + (r - o) x reaches 0 at the position.
    reach = fieller(u - r, r - o, joint.covariance, 0.0, quantile, start=-np.inf)
    if not reach.places and (o - r) ** 2 > quantile**2 * joint.covariance[1, 1]:
        # The models say the same of every text, so both roots are one, but for rounding.
        return Position(u, r, o, value, value, value, len(values), groups, _caution(groups))
    if len(reach.places) != 1 or not all(np.isfinite(reach.places[0])):
        reason = "the original and the retrained model are not told apart"
        return Position(u, r, o, value, nan, nan, len(values), groups, reason)
    low, high = reach.places[0]
    return Position(u, r, o, value, low, high, len(values), groups, _caution(groups))


def find_gap(one: Numbers, other: Numbers, *, confidence: float) -> Position:
    """Return `one - other` of the same rows, cell 0."""
    gap = one - other
    found, estimates = gap.clustered(), gap.estimates(confidence=confidence)
    if found is None:
        return Position(nan, nan, nan, nan, nan, nan, 0, 0, "no value")
    value, low, high = estimates[0][:3]
    groups, note = int(found.smaller_groups[0]), estimates[0].note.removeprefix("none: ")
    return Position(nan, nan, nan, value, low, high, estimates[0].seeds, groups, note)


def _caution(groups: int) -> str:
    return f"not to be trusted: {groups} groups" if groups < TRUSTED_GROUPS else ""


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
    found = [
        int(sum(part.sample.groups[:, ALL_OF_IT].min() for part in seed.values()))
        for numbers in several
        for seed in numbers.seeds
        if seed
    ]
    return min(found, default=0)
