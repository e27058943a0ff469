"""How many copies of each member are spiked in.

Rows of one group share text, so they have one count: a member's number of copies is then also how
its passage was seen, up to the size of its group (`passage_copies` counts that). A Poisson count is
the quantile of one keyed uniform number a group, so it depends on (seed, dataset, group) alone, and
a higher rate never gives an example fewer copies: arms of a sweep over the rate share their
randomness. Levels are assigned in turn to each dataset's groups, which lie stratum by stratum in
keyed order, beginning with a level drawn for the dataset: every group has each level with the same
probability, and the numbers of groups with each differ by at most one in a dataset and in a
stratum. So there (and only there) a new row of the same dataset can change another's level; its
anchors stay where they are. Counts do not depend on the split into tune and test.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inject import keyed
from inject.examples.example import Example
from inject.examples.strata import keyed_strata
from inject.plan.settings import Copies


@dataclass(frozen=True, kw_only=True)
class CopyCount:
    """What was intended for one example, and what was drawn."""

    example_id: str
    rate: float
    """Fixed count, Poisson rate, or level."""
    realised: int
    """Number of copies that the plan places."""


def draw_copy_counts(
    copies: Copies, members: Sequence[Example], *, seed: int, draw_number: int = 0
) -> list[CopyCount]:
    """Return the copy count of each member, in the order given.

    Each `draw_number` has draws of its own.
    """
    if copies.fixed is not None:
        rates = np.full(len(members), float(copies.fixed))
        counts = np.full(len(members), copies.fixed, dtype=np.int64)
    elif copies.poisson is not None:
        # Half a second to import, which a run that finds its plan in the store need not pay.
        from scipy.stats import poisson

        rates = np.full(len(members), copies.poisson)
        keys = keyed.item_keys([f"{member.dataset}\n{member.group}" for member in members])
        uniform = keyed.unit(keyed.words(seed, keyed.Stream.COPY_COUNT, keys, draw_number))
        counts = poisson.ppf(uniform, copies.poisson).astype(np.int64)
    else:
        counts = _levels_in_turn(copies.levels or (), members, seed, draw_number)
        rates = counts.astype(np.float64)
    return [
        CopyCount(example_id=member.example_id, rate=float(rate), realised=int(count))
        for member, rate, count in zip(members, rates, counts, strict=True)
    ]


def _levels_in_turn(
    levels: tuple[int, ...], members: Sequence[Example], seed: int, draw_number: int
) -> np.ndarray:
    """Assign the levels in turn to each dataset's groups, from a drawn one on."""
    datasets: dict[str, list[Example]] = defaultdict(list)
    for member in members:
        datasets[member.dataset].append(member)
    found: dict[tuple[str, str], int] = {}
    for dataset, rows in datasets.items():
        first = keyed.words(seed, keyed.Stream.LEVEL, keyed.item_key(dataset), draw_number)
        turn = int(keyed.below(len(levels), first))
        for stratum in keyed_strata(rows, stream=keyed.Stream.LEVEL, seed=seed, number=draw_number):
            for group in stratum.groups:
                found[dataset, group.rows[0].group] = levels[turn % len(levels)]
                turn += 1
    return np.array([found[member.dataset, member.group] for member in members], dtype=np.int64)
