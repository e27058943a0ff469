"""The draw of members, and of each side's tuning rows: every row's probability is its exact share.

The members and non-members of each stratum are its shares, rounded at random. Then the stratum's
groups form a circle, one after the other, which starts anywhere: some rows in a row are members,
then there is a gap, some rows in a row are non-members, and there is a gap. So each row is a member
with probability members / rows, for any group size, and no group is on both sides as
long as no gap is shorter than a group. The part of a group in a gap is not used. Strata that would
have less than one row on a side cannot be balanced; they are drawn from as if they were one, and so
are strata whose gaps are too short for their groups. If even all rows together are too few for
that, orders are drawn until whole groups fit; only then may probabilities differ a little with
group size.

Whole groups of a side go to `tune`, each with the probability `tune_share`. In each stratum they
are neighbours in the order in which copy counts are assigned (`inject.plan.make_plan`), so that
each split has the counts nearly in balance although neither draw depends on the other.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from inject import keyed
from inject.errors import InputError
from inject.examples.example import DropReason, Example, Side, Split
from inject.examples.pool import UsableRows
from inject.examples.random_rounding import draw_units, round_table
from inject.examples.strata import Group, Stratum, dataset_generator, keyed_strata, mixed_groups

_MAX_TRIES = 200


@dataclass(frozen=True, kw_only=True)
class DrawnSides:
    """Both sides of one dataset."""

    sides: dict[Side, list[Example]]
    strata: int
    """Number of strata of the usable rows."""
    pooled_strata: int
    """Those of them that could not be balanced separately, and were drawn from as one."""
    pooled_rows: int
    """Usable rows in them."""


def split_members(
    usable: UsableRows, *, tune_share: float, seed: int
) -> tuple[list[Example], DrawnSides]:
    """Draw the two sides of one dataset, and the tune and test split of each.

    Args:
        usable: its rows, and the requested numbers.
        tune_share: share of each side's rows whose groups go to the `tune` split.
        seed: the experiment's seed.

    Returns:
        The examples with their sides and splits, members first and each side in keyed order;
        and a record of the draw.

    Raises:
        InputError: if there are too few rows; reports their number and the reason.
    """
    request, rows = usable.request, usable.rows
    sides = draw_sides(
        rows,
        members=request.members,
        nonmembers=request.nonmembers,
        stratify=request.stratify,
        seed=seed,
    )
    if sides is None:
        lost = Counter(row_loss.drop_reason for row_loss in usable.losses)
        raise InputError(
            f"{request.members} members and {request.nonmembers} non-members requested, but only "
            f"{len(rows)} usable rows in {len({row.group for row in rows})} groups are available "
            f"({len(request.examples)} rows given, {lost[DropReason.NEAR_DUPLICATE]} "
            f"near-duplicates dropped, and {lost[DropReason.NEAR_DUPLICATE_ACROSS]} "
            "near-duplicates of other datasets; a group that shares a passage stays on one side)",
            where=f"contaminants.{request.dataset}",
            hint="Request fewer rows, provide more data, or raise pool.near_duplicate.",
        )
    examples: list[Example] = []
    for side, inside in sides.sides.items():
        splits = draw_splits(inside, side=side, tune_share=tune_share, seed=seed)
        examples += [replace(row, side=side, split=splits[row.example_id]) for row in inside]
    return examples, sides


def draw_sides(
    examples: Sequence[Example], *, members: int, nonmembers: int, stratify: bool, seed: int
) -> DrawnSides | None:
    """Draw members and non-members of one dataset.

    Args:
        examples: the usable rows.
        members: rows wanted on the member side.
        nonmembers: rows wanted on the non-member side.
        stratify: draw both sides in equal shares from each stratum.
        seed: the experiment's seed.

    Returns:
        Exactly the requested number of rows; None if whole groups do not add up to it.
    """
    total = len(examples)
    spare = total - members - nonmembers
    if spare < 0 or not examples:
        return None
    strata = keyed_strata(examples, stream=keyed.Stream.SIDE, seed=seed)
    random = dataset_generator(examples[0].dataset, stream=keyed.Stream.SIDE, seed=seed)
    least = min(members, nonmembers) if stratify else 0
    pooled, balanced = _pool_strata(strata, least, spare, total)
    # As one stratum: in the order of the groups' own keys, so that strata are mixed.
    cells = [mixed_groups(pooled)] if pooled else []
    cells += [list(stratum.groups) for stratum in balanced]
    sizes = [_rows(cell) for cell in cells]
    table = [[members * size, nonmembers * size, spare * size] for size in sizes]
    sides: dict[Side, list[Example]] = {"member": [], "nonmember": []}
    for cell, counts in zip(cells, round_table(table, total, random), strict=True):
        rows_of_sides = _draw_cell(cell, counts[0], counts[1], random)
        if rows_of_sides is None:
            return None
        for side, rows in zip(sides, rows_of_sides, strict=True):
            sides[side] += rows
    several = stratify and len(strata) > 1
    return DrawnSides(
        sides=sides,
        strata=len(strata),
        pooled_strata=len(pooled) if several else 0,
        pooled_rows=sum(stratum.size for stratum in pooled) if several else 0,
    )


def _pool_strata(
    strata: Sequence[Stratum], least: int, spare: int, total: int
) -> tuple[list[Stratum], list[Stratum]]:
    """Divide the strata into those that are drawn from as one and those balanced each.

    Args:
        strata: all of them.
        least: rows wanted on the smaller side; 0 balances no stratum.
        spare: usable rows that are not wanted.
        total: usable rows.
    """

    def fits(size: int, largest: int) -> bool:
        # Both gaps can take the remainder of a group whose other part is on a side.
        return spare * size // total >= 2 * (largest - 1)

    pooled: list[Stratum] = []
    balanced: list[Stratum] = []
    for stratum in strata:
        enough = least * stratum.size >= total and fits(stratum.size, stratum.largest)
        (balanced if enough else pooled).append(stratum)
    balanced.sort(key=lambda stratum: stratum.size)
    while pooled and balanced:
        size = sum(stratum.size for stratum in pooled)
        if fits(size, max(stratum.largest for stratum in pooled)):
            break
        pooled.append(balanced.pop(0))
    return pooled, balanced


def _draw_cell(
    groups: list[Group], members: int, nonmembers: int, random: np.random.Generator
) -> tuple[list[Example], list[Example]] | None:
    """Draw rows from groups in random order; None if no order was found that fits."""
    spare = _rows(groups) - members - nonmembers
    gap = (spare + int(random.integers(2))) // 2
    rows_of_sides = _walk_circle(groups, members, gap, nonmembers, random)
    for walk in (_walk_circle, _fill_sides):
        for _ in range(_MAX_TRIES):
            if rows_of_sides is not None:
                return rows_of_sides
            groups = [groups[place] for place in random.permutation(len(groups)).tolist()]
            gap = int(random.integers(spare + 1))
            rows_of_sides = walk(groups, members, gap, nonmembers, random)
    return rows_of_sides


def _walk_circle(
    groups: list[Group], members: int, gap: int, nonmembers: int, random: np.random.Generator
) -> tuple[list[Example], list[Example]] | None:
    """Walk the circle from anywhere; None if a group would be on both sides."""
    total = _rows(groups)
    place = int(random.integers(total))
    inside: list[Example] = []
    outside: list[Example] = []
    for group in groups:
        before = len(inside), len(outside)
        for row in group.rows:
            if place < members:
                inside.append(row)
            elif members + gap <= place < members + gap + nonmembers:
                outside.append(row)
            place = (place + 1) % total
        if len(inside) > before[0] and len(outside) > before[1]:
            return None
    return inside, outside


def _fill_sides(
    groups: list[Group], members: int, _gap: int, nonmembers: int, _random: np.random.Generator
) -> tuple[list[Example], list[Example]] | None:
    """Give each group in turn to the side that lacks the larger share of its rows."""
    inside: list[Example] = []
    outside: list[Example] = []
    for group in groups:
        lacking = members - len(inside), nonmembers - len(outside)
        side, left = (
            (inside, lacking[0])
            if lacking[0] * nonmembers > lacking[1] * members
            else (outside, lacking[1])
        )
        side += group.rows[:left]
    full = len(inside) == members and len(outside) == nonmembers
    return (inside, outside) if full else None


def _rows(groups: Sequence[Group]) -> int:
    return sum(len(group.rows) for group in groups)


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
    """Return the size of each group's part in an arc of the circle that starts anywhere.

    In parts of a row, of which there are `share.denominator`. Each group's expectation is its
    share: it is on the arc, off it, or across one of its two ends.
    """
    whole = stratum.size * share.denominator
    length = stratum.size * share.numerator
    start = int(random.integers(whole))
    sizes = []
    place = 0
    for group in stratum.groups:
        stop = place + len(group.rows) * share.denominator
        sizes.append(
            sum(
                max(0, min(stop, start + length - turn) - max(place, start - turn))
                for turn in (0, whole)
            )
        )
        place = stop
    return sizes
