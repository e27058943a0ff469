"""Draws of a calibration set and of the test set that it corrects.

A draw orders the groups of each side at random. The first items of each side calibrate, half of
them members. The next ones are corrected, as many of each side as the contaminated share requires.
The rest of the last group that calibrates is in neither set: no group is in both. All sizes and
shares take the same orders, so their numbers differ by size and share only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.intervals.influence import Counts, Floats, Mask

MOST_ITEMS = 400
"""Items of a corrected test set at most: more cost time, and change errors little."""
LEAST_ITEMS = 20


class Draws(NamedTuple):
    """The places of the items of each draw."""

    calibration: Counts
    """[draws, size]: members first, then as many non-members."""
    corrected: Counts
    """[draws, items]: members first."""
    members: int
    """Of the corrected items."""


def group_orders(group: Counts, draws: int, random: np.random.Generator) -> Floats:
    """Return a number for each item and draw that its group has in common, [draws, items]."""
    return random.random((draws, int(group.max()) + 1))[:, group]


def resampled_counts(
    group: Counts, sides: Sequence[Mask], replicates: int, random: np.random.Generator
) -> Floats:
    """Return the number of times each replicate of a bootstrap by groups contains each item.

    Args:
        group: of each item, [items].
        sides: the items of each side, whose groups are drawn separately; others are in none.
        replicates: how many.
        random: the generator.
    """
    counts = np.zeros((replicates, len(group)))
    for side in sides:
        groups, place = np.unique(group[side], return_inverse=True)
        shares = np.full(len(groups), 1 / len(groups))
        counts[:, side] = random.multinomial(len(groups), shares, size=replicates)[:, place]
    return counts


def draw_sets(
    member: Mask, group: Counts, orders: Floats, *, size: int, share: float
) -> Draws | None:
    """Return the sets of all draws; None if there are too few items.

    Args:
        member: which items are members.
        group: of each item; all items of a group are on one side.
        orders: from `group_orders`.
        size: items of the calibration set.
        share: of members among the corrected items.
    """
    sides, half = [np.flatnonzero(mask) for mask in (member, ~member)], size // 2
    largest = [int(np.bincount(group[items]).max(initial=1)) for items in sides]
    # Items that every draw leaves to correct.
    inside, outside = (
        len(items) - half - (most - 1) for items, most in zip(sides, largest, strict=True)
    )
    if min(inside, outside) < 1:
        return None
    total = int(min(inside / share, outside / (1 - share), MOST_ITEMS) + 1e-9)
    if total < LEAST_ITEMS:
        return None
    members = min(round(share * total), inside)
    counts = members, min(total - members, outside)
    parts = [_draw_side(*each, group, orders, half) for each in zip(sides, counts, strict=True)]
    calibration, corrected = (np.concatenate(sets, axis=1) for sets in zip(*parts, strict=True))
    return Draws(calibration, corrected, members)


def _draw_side(
    items: Counts, count: int, group: Counts, orders: Floats, half: int
) -> tuple[Counts, Counts]:
    """Return the items of a side that calibrate, and the first so many that are corrected."""
    ordered = items[np.argsort(orders[:, items], axis=1, kind="stable")]
    calibration, others = np.split(ordered, [half], axis=1)
    cut = (group[others] == group[calibration[:, -1:]]).sum(axis=1, keepdims=True)
    return calibration, np.take_along_axis(others, cut + np.arange(count), axis=1)
