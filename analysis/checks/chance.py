"""Are detectors at chance where they must be? One rule for all the AUCs that a check shows.

*Fails* where any of the m intervals shown, widened for their number, misses 0.5: Bonferroni, by the
ratio of normal quantiles, so all settings, default and tuned, every dataset and every arm count.
The number is m times the checks that a page can have: without any bias at most one page in twenty
shows a failed one, not one check in twenty. No widened half is narrower than that of the rank-sum
test on as many rows, because a bootstrap of few rows is too sure of itself. Simulated in
tests/analysis/checks/test_chance.py; docs/validity.md says what it misses.

*Passes* only where, moreover, each interval over all datasets lies within 0.5 ± 0.1: to miss a bias
is no finding. Else the rows *cannot tell*, and what they could have missed is said. Holding every
interval against the bound needs no correction: all of them have to lie inside.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from analysis.metrics_table import Cell

CHANCE = 0.5
MARGIN = 0.1
"""The largest bias, in AUC, that a passed check may have missed."""
CHECKS = 4
"""Checks of AUCs that a page can have: blind, base model, zero copies, clean twin."""
_TAIL = 0.025


class Ends(NamedTuple):
    """The two ends of an interval."""

    low: float
    high: float


def widen_for_number(cell: Cell, number: int) -> Ends:
    """Return a cell's interval as one of `number` intervals that hold together.

    Its halves are at least those of the rank-sum test on as many rows, ties set aside.
    """
    quantile = NormalDist().inv_cdf(1 - _TAIL / number)
    ratio = quantile / NormalDist().inv_cdf(1 - _TAIL)
    least = quantile * _null_error(cell.n_members, cell.n_nonmembers)
    return Ends(
        cell.value - max(ratio * (cell.value - cell.low), least),
        cell.value + max(ratio * (cell.high - cell.value), least),
    )


def cells_off_chance(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells whose interval, widened for their number and the checks', misses 0.5."""
    return [
        cell
        for cell in cells
        if not (ends := widen_for_number(cell, CHECKS * len(cells))).low <= CHANCE <= ends.high
    ]


def possible_aucs(cell: Cell) -> Ends:
    """Return the AUCs that a cell's own interval still holds possible."""
    ends = widen_for_number(cell, 1)
    return Ends(max(0.0, ends.low), min(1.0, ends.high))


def outer_ends(ends: Sequence[Ends]) -> Ends:
    """Return the lowest and the highest of some ends."""
    return Ends(min(one.low for one in ends), max(one.high for one in ends))


def within_margin(ends: Ends) -> bool:
    """Say whether both ends are as near to 0.5 as a passed check asks."""
    return ends.low >= CHANCE - MARGIN and ends.high <= CHANCE + MARGIN


def _null_error(members: int, nonmembers: int) -> float:
    """Return the standard error of an AUC when both sides are drawn alike (Mann and Whitney)."""
    return sqrt((members + nonmembers + 1) / (12 * max(members, 1) * max(nonmembers, 1)))
