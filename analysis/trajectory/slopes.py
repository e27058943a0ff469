"""How fast one example fades: slopes within examples, which no learning-rate schedule can feign.

Texts seen late were learnt at another learning rate than texts seen early, so with warm-up or a
falling rate the time since the last copy goes with how well a text was learnt, and a trend over
examples shows that. Here an example is compared with itself alone, at checkpoints between which it
saw no further copy: its placement among the non-members under each, against log2(1 + steps since
the last copy). One least-squares slope over all examples, each about its own mean.

Intervals from influence values, as everywhere: whole groups of members, and the non-members that
they are placed among, which are the same at all checkpoints. Cost: 2 ms a checkpoint and setting.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.arm import Column
from analysis.auc_cells import ArmRows, GroupNumbers
from analysis.copy_bins import CopiesCell
from analysis.intervals.clustered import Part
from analysis.intervals.ends import Scale
from analysis.intervals.influence import Sample
from analysis.intervals.numbers import Numbers
from analysis.metrics import Floats
from analysis.tables import PreparedCohort


@dataclass(frozen=True, kw_only=True)
class PreparedCheckpoint:
    """One checkpoint of one cohort, over its seeds, made ready."""

    step: int
    tokens: int
    batch_tokens: int
    work: PreparedCohort
    since: Sequence[npt.NDArray[np.int64]]
    """For each seed: steps since the last copy by example; -1 where none was seen."""
    constant_rate: bool = True
    """Whether every step is made at the same learning rate."""

    @property
    def arms(self) -> Sequence[ArmRows]:
        """The rows of each seed."""
        return self.work.arms


class Placed(NamedTuple):
    """The members of one dataset under one checkpoint that has seen them, [n]."""

    rows: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    """Step of the last copy."""
    doublings: Floats
    scores: Floats
    outside: npt.NDArray[np.int64]
    """Rows of the non-members."""
    outside_scores: Floats

    def among(self, which: npt.NDArray[np.bool_]) -> "Placed":
        """Return some of the members."""
        return self._replace(
            rows=self.rows[which],
            last=self.last[which],
            doublings=self.doublings[which],
            scores=self.scores[which],
        )


def fading_slope(
    every: Sequence[PreparedCheckpoint], column: Column, cell: CopiesCell
) -> tuple[Numbers, int]:
    """Return the slope of members with so many copies, and the pairs behind it.

    It is the change of placement (an AUC) for each doubling of one plus the steps since.

    Args:
        every: all checkpoints of a cohort.
        column: detector and setting.
        cell: copies seen by then.
    """
    parts: list[dict[str, Part]] = []
    pairs = 0
    for datasets in place_datasets(every, column, cell):
        parts.append({})
        for dataset, placed, groups in datasets:
            made = slope_part(placed, groups.of_row, groups.counts[dataset])
            if made is not None:
                parts[-1][dataset] = made[0]
                pairs += made[1]
    return Numbers(parts, Scale.SLOPE), pairs


def slope_part(
    placed: Sequence[Placed], group_of_row: npt.NDArray[np.int64], n_groups: int
) -> tuple[Part, int] | None:
    """Return what one dataset of one seed says of the slope within examples, and its pairs.

    Pairs are of an example and a checkpoint, of examples with two or more; None if there are none.

    Args:
        placed: the members of one dataset under each checkpoint.
        group_of_row: of all rows that members and non-members are numbered by.
        n_groups: numbers of groups lie below.
    """
    rows = np.concatenate([one.rows for one in placed])
    stay = np.stack([rows, np.concatenate([one.last for one in placed])])
    _, index = np.unique(stay, axis=1, return_inverse=True)
    index = index.reshape(-1)
    sizes = np.bincount(index)
    doublings = np.concatenate([one.doublings for one in placed])
    apart = doublings - (np.bincount(index, doublings) / sizes)[index]
    total = float(np.square(apart).sum())
    if total <= 1e-12:
        return None
    below = np.concatenate([_below(one) for one in placed])
    slope = float((apart * below).sum() / total)
    left = below - (np.bincount(index, below) / sizes)[index] - slope * apart
    used = np.bincount(index, np.square(apart))[index] > 0
    inside = np.bincount(group_of_row[rows], weights=apart * left / total, minlength=n_groups)
    against = _of_nonmembers(placed, apart / total)
    sample = _sample(slope, inside, rows[used], against, group_of_row)
    members = np.array([len(set(rows[used].tolist()))])
    return Part(sample, np.array([total]), members, len(against)), int(used.sum())


def mean_sample(
    placed: Sequence[Placed], group_of_row: npt.NDArray[np.int64], n_groups: int
) -> Sample:
    """Return the mean placement of all pairs, an AUC; arguments as for `slope_sample`."""
    rows = np.concatenate([one.rows for one in placed])
    below = np.concatenate([_below(one) for one in placed])
    mean = float(below.mean())
    inside = np.bincount(group_of_row[rows], (below - mean) / len(rows), minlength=n_groups)
    against = _of_nonmembers(placed, np.full(len(rows), 1 / len(rows)))
    return _sample(mean, inside, rows, against, group_of_row)


def _sample(
    value: float,
    inside: npt.NDArray[Any],
    members: npt.NDArray[np.int64],
    against: Mapping[int, float],
    group_of_row: npt.NDArray[np.int64],
) -> Sample:
    """Return one number with its influence.

    Args:
        value: the number.
        inside: what groups of members move it by, [groups].
        members: rows of the members behind it.
        against: what each non-member adds to it, by its row.
        group_of_row: of all rows.
    """
    centre = sum(against.values()) / len(against)
    outside = np.zeros(len(inside))
    for row, added in against.items():
        outside[group_of_row[row]] += added - centre
    counts = [len(set(group_of_row[side].tolist())) for side in (members, list(against))]
    scales = [np.sqrt(count / max(count - 1, 1)) for count in counts]
    return Sample(
        np.array([value]),
        np.stack([inside * scales[0], outside * scales[1]])[:, None],
        np.maximum(np.array(counts, dtype=float) - 1, 1.0)[:, None],
        np.array(counts, dtype=np.int64)[:, None],
    )


def place_datasets(
    every: Sequence[PreparedCheckpoint], column: Column, cell: CopiesCell
) -> Iterator[list[tuple[str, list[Placed], GroupNumbers]]]:
    """Yield for each seed its datasets, with the members under each checkpoint and their groups."""
    arms = [
        (arm, since, one.step)
        for one in every
        for arm, since in zip(one.arms, one.since, strict=True)
    ]
    names = dict.fromkeys(name for arm, _, _ in arms for name in arm.compared)
    for seed in sorted({arm.loaded.arm.seed for arm, _, _ in arms}):
        datasets = []
        for dataset in names:
            found = [
                (placed, arm.groups)
                for arm, since, step in arms
                if arm.loaded.arm.seed == seed and dataset in arm.compared
                for placed in [_placed(arm, since, dataset, column, cell, step)]
                if placed is not None
            ]
            if found:
                datasets.append((dataset, [placed for placed, _ in found], found[-1][1]))
        yield datasets


def _placed(
    arm: ArmRows,
    since: npt.NDArray[np.int64],
    dataset: str,
    column: Column,
    cell: CopiesCell,
    step: int,
) -> Placed | None:
    compared = arm.compared[dataset].rows(column)
    inside = np.flatnonzero(
        compared & arm.loaded.member & (since >= 0) & cell.holds(arm.loaded.copies)
    )
    outside = np.flatnonzero(compared & ~arm.loaded.member)
    if not len(inside) or len(outside) < 2:
        return None
    scores = arm.loaded.scores[:, arm.loaded.index[column]]
    return Placed(
        inside,
        step - since[inside],
        np.log2(1.0 + since[inside]),
        scores[inside],
        outside,
        scores[outside],
    )


def _below(one: Placed) -> Floats:
    """Return the share of non-members below each member, ties half."""
    ordered = np.sort(one.outside_scores)
    lower = np.searchsorted(ordered, one.scores, side="left")
    upper = np.searchsorted(ordered, one.scores, side="right")
    return (lower + upper) / (2 * len(ordered))


def _of_nonmembers(placed: Sequence[Placed], weights: Floats) -> dict[int, float]:
    """Return what each non-member adds to the slope, by its row: they sum to the slope."""
    found: dict[int, float] = {}
    start = 0
    for one in placed:
        mine = weights[start : start + len(one.rows)]
        start += len(one.rows)
        order = np.argsort(one.scores)
        running = np.concatenate([[0.0], np.cumsum(mine[order])])
        ordered = one.scores[order]
        lower = running[np.searchsorted(ordered, one.outside_scores, side="left")]
        upper = running[np.searchsorted(ordered, one.outside_scores, side="right")]
        above = running[-1] - (lower + upper) / 2
        for row, value in zip(one.outside.tolist(), above / len(one.outside), strict=True):
            found[row] = found.get(row, 0.0) + float(value)
    return found
