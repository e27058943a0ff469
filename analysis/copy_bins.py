"""Numbers of copies as labels: `0`, `1` … `4`, then bins from 5 to 8, 9 to 16, 17 to 32, …

A bin is called by the smallest and the largest count that occur in it, so an experiment with fixed
doses 1, 4 and 8 has rows `1`, `4` and `8`, and one in which a single member of eight copies lost
one has `7-8`. `all` is every member with at least one copy;
`4+` every member with at least four.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arm import LoadedArm

ALL = "all"
_SINGLE = 4


class CopiesCell(NamedTuple):
    """Members whose realised copy count satisfies `low <= copies <= high`."""

    label: str
    low: int
    high: int

    def holds(self, copies: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether each count is in this cell, same shape as `copies`."""
        return (copies >= self.low) & (copies <= self.high)


_NO_LIMIT = np.iinfo(np.int64).max
EVERY_MEMBER = CopiesCell(ALL, 0, _NO_LIMIT)
"""The one cell of a model for which copies have no meaning (`Arm.copies` is None)."""


def copies_cells(counts: Iterable[int], *, high_copies: int) -> list[CopiesCell]:
    """Return the cells of an arm in order: all, zero, single counts and bins, `N+`.

    Args:
        counts: the realised copies of every member of the arm (over all its seeds).
        high_copies: the N of `N+`; that cell exists if any count reaches it.

    >>> [cell.label for cell in copies_cells([0, 1, 1, 5, 7, 9], high_copies=4)]
    ['all', '0', '1', '5-7', '9', '4+']
    """
    present = sorted(set(counts))
    cells = [CopiesCell(ALL, 1, _NO_LIMIT)]
    for ends, inside in groupby(present, key=_bin):
        # The ends that occur: who had 7 or 8 copies is not called one of five to eight.
        cells.append(CopiesCell(_label(*inside), *ends))
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
    """Return the position of a label such as `4` or `5-8` among numbers: its middle."""
    ends = [int(part) for part in label.split("-")]
    return (ends[0] + ends[-1]) / 2


def merge_bins(labels: Iterable[str]) -> dict[str, list[str]]:
    """Gather the labels of one bin under one name, for tables whose counts differ.

    >>> merge_bins(["1", "5-7", "6", "5-8"])
    {'1': ['1'], '5-8': ['5-7', '6', '5-8']}
    """
    ordered = sorted(set(labels), key=lambda label: (copies_order(label), label))
    bins = [list(own) for _, own in groupby(ordered, key=lambda label: _bin(copies_start(label)))]
    ends = ([int(part) for label in own for part in label.split("-")] for own in bins)
    return {_label(*counts): own for counts, own in zip(ends, bins, strict=True)}


def _label(*counts: int) -> str:
    first, last = min(counts), max(counts)
    return str(first) if first == last else f"{first}-{last}"


def is_dose(label: str) -> bool:
    """Return whether a label is one count or one bin of counts: neither `all` nor `4+`."""
    return label != ALL and not label.endswith("+")


def _bin(count: int) -> tuple[int, int]:
    if count <= _SINGLE:
        return (count, count)
    high = 1 << (count - 1).bit_length()
    return (high // 2 + 1, high)


COLUMN = "passage_copies"


def passage_copies(
    group: npt.NDArray[np.object_], copies: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the copies of all rows of each example's group, its own included, shape [n]."""
    _, place = np.unique(group, return_inverse=True)
    return np.bincount(place, copies)[place].astype(np.int64)


def with_passage_copies(
    rows: Iterable[Mapping[str, Any]], arms: Sequence[LoadedArm], cells: Sequence[CopiesCell]
) -> Iterator[dict[str, Any]]:
    """Yield metric rows with the mean over the members in the test split that each is about.

    NaN if there are none.

    Args:
        rows: of one cohort; with `dataset`, `copies` and `variant`.
        arms: the cohort's, one per seed; those without copies are ignored.
        cells: all cells that rows name.
    """
    by_label = {cell.label: cell for cell in cells}
    counted = [(a, passage_copies(a.group, a.copies)) for a in arms if a.arm.copies is not None]

    @cache
    def mean(dataset: str, copies: str, variant: str) -> float:
        passage_counts: list[int] = []
        for arm, counts in counted:
            inside = arm.member & arm.test & by_label[copies].holds(arm.copies)
            if dataset != ALL:
                inside &= arm.dataset == dataset
            if variant != ALL:
                inside &= arm.variant == variant
            passage_counts += counts[inside].tolist()
        return float(np.mean(passage_counts)) if passage_counts else float("nan")

    for row in rows:
        yield {**row, COLUMN: mean(row["dataset"], row["copies"], row["variant"])}


def passage_sentences(metrics: pa.Table) -> list[str]:
    """Return a sentence for each dataset whose passages were seen more often than its copies.

    Args:
        metrics: the metrics table of an experiment.
    """
    means_by_dataset: dict[str, dict[str, set[float]]] = {}
    columns = ("model", "dataset", "copies", "variant", COLUMN)
    for model, dataset, copies, variant, mean in zip(
        *(metrics[name].to_pylist() for name in columns), strict=True
    ):
        if model == "contaminated" and dataset != ALL and variant == ALL and is_dose(copies):
            means_by_dataset.setdefault(dataset, {}).setdefault(copies, set()).add(mean)
    sentences = []
    for dataset, cells in means_by_dataset.items():
        if any(max(means) > int(label.split("-")[-1]) for label, means in cells.items()):
            labels = sorted(cells, key=copies_order)
            by_dose = "; ".join(f"{label}: {_range(cells[label])}" for label in labels)
            sentences.append(
                f"{dataset}: rows share passages, and a copy of any of them shows the passage. By "
                f"a member's own copies, the mean number of copies with its passage: {by_dose}."
            )
    return sentences


def _range(means: set[float]) -> str:
    low, high = f"{min(means):.1f}", f"{max(means):.1f}"
    return low if low == high else f"{low} to {high}"
