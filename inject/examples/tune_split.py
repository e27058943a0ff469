"""Which examples tune the detectors' settings: the split of each side into `tune` and `test`.

Whole groups of a side go to `tune`, each with the probability `tune_share`. In each stratum they
are neighbours in the order in which copy counts are assigned (`inject.plan.copy_counts`), so that
each split has the counts nearly in balance although neither draw depends on the other.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from inject import keyed
from inject.examples.example import Example, Side, Split
from inject.examples.random_rounding import draw_units
from inject.examples.strata import Group, Stratum, dataset_generator, keyed_strata


def draw_splits(
    examples: Sequence[Example], *, side: Side, tune_share: float, seed: int
) -> dict[str, Split]:
    """Draw the split of each row; by example_id.

    Args:
        examples: one side of one dataset.
        side: which side it is.
        tune_share: each row's probability to be in `tune`.
        seed: the experiment's seed.
    """
    share = Fraction(str(tune_share))
    strata = keyed_strata(examples, stream=keyed.Stream.LEVEL, seed=seed)
    name = f"{examples[0].dataset}\n{side}"
    random = dataset_generator(name, stream=keyed.Stream.SPLIT, seed=seed)
    groups: list[Group] = []
    masses: list[int] = []
    places: list[range] = []
    for stratum in strata:
        places.append(range(len(groups), len(groups) + len(stratum.groups)))
        groups += stratum.groups
        masses += _arc(stratum, share, random)
    capacities = [share.denominator * len(group.rows) for group in groups]
    tune = draw_units(masses, capacities, places, random)
    return {
        row.example_id: "tune" if inside else "test"
        for group, inside in zip(groups, tune, strict=True)
        for row in group.rows
    }


def _arc(stratum: Stratum, share: Fraction, random: np.random.Generator) -> list[int]:
    """Return how much of each group lies on a share of the circle that starts anywhere.

    In parts of a row, of which there are `share.denominator`. Each group's expectation is its
    share: it is on the arc, off it, or across one of its two ends.
    """
    whole = stratum.size * share.denominator
    length = stratum.size * share.numerator
    start = int(random.integers(whole))
    found = []
    place = 0
    for group in stratum.groups:
        stop = place + len(group.rows) * share.denominator
        found.append(
            sum(
                max(0, min(stop, start + length - turn) - max(place, start - turn))
                for turn in (0, whole)
            )
        )
        place = stop
    return found
