"""How often the passages of members stand in the stream, beside how often the members do.

Rows of one group (questions about one passage) each have copies of their own, so a passage is seen
as often as all rows of its group together. A cell by copies holds members by their own copies; its
mean of `passage_copies` says what that is worth. Where no rows share a passage the two are equal.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arm import LoadedArm
from analysis.copy_bins import ALL, CopiesCell, copies_order, copies_start, is_dose

COLUMN = "passage_copies"


def passage_copies(
    group: npt.NDArray[np.object_], copies: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the copies of all rows of each example's group, its own included, shape [n]."""
    shared: Counter[str] = Counter()
    for name, count in zip(group.tolist(), copies.tolist(), strict=True):
        shared[name] += count
    return np.array([shared[name] for name in group.tolist()], dtype=np.int64)


class PassageCopies:
    """The means over the members of one cohort's cells, each made once."""

    def __init__(self, arms: Sequence[LoadedArm]) -> None:
        """Count.

        Args:
            arms: the cohort's arms, one a seed; those without copies say nothing.
        """
        self._arms = [
            (arm, passage_copies(arm.group, arm.copies))
            for arm in arms
            if arm.arm.copies is not None
        ]
        self._known: dict[tuple[str, CopiesCell, str], float] = {}

    def beside(
        self, rows: Iterable[Mapping[str, Any]], cells: Sequence[CopiesCell]
    ) -> Iterator[dict[str, Any]]:
        """Yield metric rows with the mean over the members that each is about.

        Args:
            rows: of the cohort; with `dataset`, `copies` and `variant`.
            cells: all cells that rows name.
        """
        by_label = {cell.label: cell for cell in cells}
        for row in rows:
            key = (row["dataset"], by_label[row["copies"]], row["variant"])
            if key not in self._known:
                self._known[key] = self._mean(*key)
            yield {**row, COLUMN: self._known[key]}

    def _mean(self, dataset: str, cell: CopiesCell, variant: str) -> float:
        """Return the mean over the members of a cell in the test split; NaN without any."""
        found: list[int] = []
        for arm, counts in self._arms:
            inside = arm.member & arm.test & cell.holds(arm.copies)
            if dataset != ALL:
                inside &= arm.dataset == dataset
            if variant != ALL:
                inside &= arm.variant == variant
            found += counts[inside].tolist()
        return float(np.mean(found)) if found else float("nan")


def passage_sentences(metrics: pa.Table) -> list[str]:
    """Say for each dataset how often passages were seen, where that is more than the copies.

    Args:
        metrics: the metrics table of an experiment.
    """
    found: dict[str, dict[str, set[float]]] = {}
    columns = ("model", "dataset", "copies", "variant", COLUMN)
    for model, dataset, copies, variant, mean in zip(
        *(metrics[name].to_pylist() for name in columns), strict=True
    ):
        if model == "contaminated" and dataset != ALL and variant == ALL and is_dose(copies):
            found.setdefault(dataset, {}).setdefault(copies, set()).add(mean)
    sentences = []
    for dataset, cells in found.items():
        if not any(max(means) > _most(label) for label, means in cells.items()):
            continue
        by_dose = "; ".join(
            f"{label}: {_range(cells[label])}" for label in sorted(cells, key=copies_order)
        )
        sentences.append(
            f"{dataset}: rows share passages, and a copy of any of them shows the passage. By a "
            f"member's own copies, the mean number of copies with its passage: {by_dose}."
        )
    return sentences


def _most(label: str) -> int:
    """Return the largest count of a label such as `4` or `5-8`."""
    return int(label.rsplit("-", 1)[-1]) if "-" in label else copies_start(label)


def _range(means: set[float]) -> str:
    low, high = f"{min(means):.1f}", f"{max(means):.1f}"
    return low if low == high else f"{low} to {high}"
