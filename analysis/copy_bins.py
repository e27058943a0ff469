"""Numbers of copies as labels: `0`, `1` … `4`, then bins from 5 to 8, 9 to 16, 17 to 32, …

A bin is called by the smallest and the largest count that occur in it, so an experiment with fixed
doses 1, 4 and 8 has rows `1`, `4` and `8`, and one in which a single member of eight copies lost
one has `7-8`. `all` is every member with at least one copy;
`4+` every member with at least four.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ALL = "all"
_SINGLE = 4


class CopiesCell(NamedTuple):
    """Members whose realised number of copies lies in `low <= copies <= high`."""

    label: str
    low: int
    high: int

    def holds(self, copies: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of the counts lie in this cell, same shape as `copies`."""
        return (copies >= self.low) & (copies <= self.high)


_NO_LIMIT = np.iinfo(np.int64).max
EVERY_MEMBER = CopiesCell(ALL, 0, _NO_LIMIT)
"""The one cell of a model for which copies have no meaning (`Arm.copies` is None)."""


def copies_cells(counts: Iterable[int], *, high_copies: int) -> list[CopiesCell]:
    """Return the cells of an arm in order: all, zero, single counts and bins, `N+`.

    Args:
        counts: the realised copies of every member of the arm (over all its seeds).
        high_copies: the N of `N+`; that cell exists where any count reaches it.

    >>> [cell.label for cell in copies_cells([0, 1, 1, 5, 7, 9], high_copies=4)]
    ['all', '0', '1', '5-7', '9', '4+']
    """
    present = sorted(set(counts))
    found: dict[tuple[int, int], list[int]] = {}
    for count in present:
        found.setdefault(_bin(count), []).append(count)
    cells = [CopiesCell(ALL, 1, _NO_LIMIT)]
    for (low, high), inside in found.items():
        # The ends that occur: who had 7 or 8 copies is not called one of five to eight.
        first, last = min(inside), max(inside)
        label = str(first) if first == last else f"{first}-{last}"
        cells.append(CopiesCell(label, low, high))
    if present and present[-1] >= high_copies:
        cells.append(CopiesCell(f"{high_copies}+", high_copies, _NO_LIMIT))
    return cells


def copies_order(label: str) -> tuple[int, int]:
    """Return a sort key: `all` first, then by the smallest count, `N+` last."""
    if label == ALL:
        return (-1, 0)
    return (1 if label.endswith("+") else 0, copies_start(label))


def copies_start(label: str) -> int:
    """Return the smallest count of a label such as `4`, `5-8` or `4+`."""
    return int(re.split(r"[-+]", label)[0])


def copies_middle(label: str) -> float:
    """Return where a label such as `4` or `5-8` stands among numbers: at its middle."""
    ends = [int(part) for part in label.split("-")]
    return (ends[0] + ends[-1]) / 2


def merge_bins(labels: Iterable[str]) -> dict[str, list[str]]:
    """Gather the labels of one bin under one name, for tables whose counts differ.

    >>> merged(["1", "5-7", "6", "5-8"])
    {'1': ['1'], '5-8': ['5-7', '6', '5-8']}
    """
    bins: dict[tuple[int, int], list[str]] = {}
    for label in sorted(set(labels), key=lambda label: (copies_order(label), label)):
        bins.setdefault(_bin(copies_start(label)), []).append(label)
    found = {}
    for same in bins.values():
        ends = [int(part) for label in same for part in label.split("-")]
        first, last = min(ends), max(ends)
        found[str(first) if first == last else f"{first}-{last}"] = same
    return found


def is_dose(label: str) -> bool:
    """Say whether a label is one count or one bin of counts: neither `all` nor `4+`."""
    return label != ALL and not label.endswith("+")


def _bin(count: int) -> tuple[int, int]:
    if count <= _SINGLE:
        return (count, count)
    high = 1 << (count - 1).bit_length()
    return (high // 2 + 1, high)
