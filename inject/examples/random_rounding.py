"""Shares rounded at random, so that each row's probability is exactly its share.

Rounding by a fixed rule gives small cells the same outcome for every seed. Here the rounding is
drawn, and the expectation of every count is its share. `round_table` rounds a two-way table with
whole margins (controlled rounding, Cox 1987): each entry becomes one of its two neighbours and no
margin moves. `settle` decides units of unequal size one against another (the pivotal method,
Deville and Tillé 1998): the total moves by less than a unit. All in integers, hence exact. Cost: a
few microseconds for each fractional entry or undecided unit.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np


def round_table(
    table: Sequence[Sequence[int]], unit: int, random: np.random.Generator
) -> list[list[int]]:
    """Round each entry / unit up or down, with its exact value as expectation.

    Args:
        table: numerators, shape [rows, columns]; all sums of rows and of columns are multiples of
            `unit`.
        unit: the common denominator.
        random: decides the rounding, in an order of the rows that it also draws.

    Returns:
        Whole numbers with the same sums of rows and of columns, each less than 1 from its entry.
    """
    whole = [[value // unit for value in row] for row in table]
    pending: dict[int, dict[int, int]] = {}
    for index in random.permutation(len(table)).tolist():
        remainders = {
            column: value % unit for column, value in enumerate(table[index]) if value % unit
        }
        if not remainders:
            continue
        pending[index] = remainders
        while cycle := _cycle(pending):
            _shift(cycle, pending, whole, unit, random)
            pending = {row: remainders for row, remainders in pending.items() if remainders}
    return whole


def settle(
    masses: list[int], capacities: Sequence[int], places: Sequence[int], random: np.random.Generator
) -> int | None:
    """Make all but one of the units at `places` full or empty; change `masses` in place.

    Each unit stays at its mass in expectation, and the sum of all masses does not move.

    Args:
        masses: of all units, 0 <= mass <= capacity.
        capacities: the masses of the units when they are full.
        places: which units, in the order in which they meet.
        random: decides each meeting.

    Returns:
        The only unit that is neither full nor empty; None if all are decided.
    """
    open_place: int | None = None
    for place in places:
        if not 0 < masses[place] < capacities[place]:
            continue
        if open_place is None:
            open_place = place
            continue
        up = min(capacities[open_place] - masses[open_place], masses[place])
        down = min(masses[open_place], capacities[place] - masses[place])
        shift = up if random.integers(up + down) < down else -down
        masses[open_place] += shift
        masses[place] -= shift
        pair = (open_place, place)
        open_place = next((unit for unit in pair if 0 < masses[unit] < capacities[unit]), None)
    return open_place


def draw_units(
    masses: Sequence[int],
    capacities: Sequence[int],
    strata: Sequence[Sequence[int]],
    random: np.random.Generator,
) -> list[bool]:
    """Decide which units are taken, each with probability mass / capacity.

    The sum of the capacities taken is less than one unit from the sum of the masses; within each
    stratum likewise.

    Args:
        masses: of all units.
        capacities: of all units, in the measure to be balanced.
        strata: the units of each stratum; each unit in one of them.
        random: decides.
    """
    left = list(masses)
    over = [settle(left, capacities, places, random) for places in strata]
    undecided = [place for place in over if place is not None]
    meeting = [undecided[place] for place in random.permutation(len(undecided)).tolist()]
    last = settle(left, capacities, meeting, random)
    if last is not None:
        taken = random.integers(capacities[last]) < left[last]
        left[last] = capacities[last] if taken else 0
    return [mass > 0 for mass in left]


_Step = tuple[int, int, int]
"""One row of a cycle, and two columns: the second loses the amount that the first gains."""


def _cycle(pending: dict[int, dict[int, int]]) -> list[_Step]:
    """Return rows and columns that can exchange without moving a margin; empty for none."""
    alive = {row: set(remainders) for row, remainders in pending.items()}
    while alive:
        degree = Counter(column for columns in alive.values() for column in columns)
        left = {
            row: shared
            for row, columns in alive.items()
            if len(shared := {column for column in columns if degree[column] > 1}) > 1
        }
        if left == alive:
            break
        alive = left
    if not alive:
        return []
    row = min(alive)
    up = min(alive[row])
    path: list[_Step] = []
    while True:
        # Every row left has a second column, and every column a second row: no dead end.
        before = next((at for at, step in enumerate(path) if step[0] == row), None)
        if before is not None:
            return [(row, up, path[before][2]), *path[before + 1 :]]
        down = min(alive[row] - {up})
        path.append((row, up, down))
        closed = next((at for at, step in enumerate(path) if step[1] == down), None)
        if closed is not None:
            return path[closed:]
        row = min(other for other, columns in alive.items() if down in columns and other != row)
        up = down


def _shift(
    cycle: Sequence[_Step],
    pending: dict[int, dict[int, int]],
    whole: list[list[int]],
    unit: int,
    random: np.random.Generator,
) -> None:
    """Move as much as can be moved along a cycle one way or the other, in expectation nothing."""
    up = min(min(unit - pending[row][gains], pending[row][loses]) for row, gains, loses in cycle)
    down = min(min(pending[row][gains], unit - pending[row][loses]) for row, gains, loses in cycle)
    shift = up if random.integers(up + down) < down else -down
    for row, gains, loses in cycle:
        for column, change in ((gains, shift), (loses, -shift)):
            value = pending[row][column] + change
            if value in (0, unit):
                del pending[row][column]
                whole[row][column] += value // unit
            else:
                pending[row][column] = value
