"""How many copies of each member are spiked in.

A Poisson count is the quantile of one keyed uniform number an example, so it depends on
(seed, example) alone, and a higher rate never gives an example fewer copies: arms of a
sweep over the rate share their randomness. Levels are dealt evenly inside each dataset and
split, so there (and only there) a new row of the same dataset can change another's level;
its anchors stay where they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inject import keyed
from inject.example import Example
from inject.settings import Copies


@dataclass(frozen=True, kw_only=True)
class Dose:
    """What was intended for one example, and what was drawn."""

    example_id: str
    rate: float
    """Fixed count, Poisson rate, or level."""
    realised: int
    """Number of copies that the plan places."""


def doses(copies: Copies, members: Sequence[Example], *, seed: int, deal: int = 0) -> list[Dose]:
    """Return the dose of every member, in the order given; each `deal` has draws of its own."""
    keys = keyed.item_keys([member.example_id for member in members])
    if copies.fixed is not None:
        rates = np.full(len(members), float(copies.fixed))
        counts = np.full(len(members), copies.fixed, dtype=np.int64)
    elif copies.poisson is not None:
        # Half a second to import, which a run that finds its plan in the store need not pay.
        from scipy.stats import poisson

        rates = np.full(len(members), copies.poisson)
        uniform = keyed.unit(keyed.words(seed, keyed.Stream.DOSE, keys, deal))
        counts = poisson.ppf(uniform, copies.poisson).astype(np.int64)
    else:
        counts = _dealt(copies.levels or (), members, keys, seed, deal)
        rates = counts.astype(np.float64)
    return [
        Dose(example_id=member.example_id, rate=float(rate), realised=int(count))
        for member, rate, count in zip(members, rates, counts, strict=True)
    ]


def _dealt(
    levels: tuple[int, ...], members: Sequence[Example], keys: keyed.U64, seed: int, deal: int
) -> np.ndarray:
    """Deal the levels round robin over each dataset's members, sorted by keyed hash."""
    hashes = keyed.words(seed, keyed.Stream.LEVEL, keys, deal)
    order = sorted(
        range(len(members)),
        key=lambda index: (
            members[index].dataset,
            members[index].split,
            members[index].stratum,
            int(hashes[index]),
        ),
    )
    counts = np.zeros(len(members), dtype=np.int64)
    dealt = 0
    dataset = None
    for index in order:
        if members[index].dataset != dataset:
            dataset, dealt = members[index].dataset, 0
        counts[index] = levels[dealt % len(levels)]
        dealt += 1
    return counts
