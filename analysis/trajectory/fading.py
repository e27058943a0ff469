"""How detection fades: AUC by the optimiser steps since a model last saw an example, and slopes.

Every pair of a member and a checkpoint that has seen it, placed among the non-members at the same
checkpoint and in the same dataset. Positions of copies are drawn at random, so among pairs with one
copy count the time since the last does not depend on the text. It goes with the learning
rate, though, if that is not constant: texts seen late were learnt at another rate than texts seen
early, and a trend over examples shows that.

The slope within examples measures fading: an example is only compared with itself, at checkpoints
between which it saw no further copy: its placement among the non-members under each, against
log2(1 + steps since the last copy). One least-squares slope over all examples, each about its own
mean.

Intervals from influence values, as everywhere: whole groups of members, so that the pairs of one
example count once, and the non-members that they are placed among, which are the same at all
checkpoints. Cost: 2 ms a checkpoint and setting.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.arm import DetectorColumn
from analysis.auc_cells import PreparedCohort
from analysis.copy_bins import ALL, CopiesCell, copies_cells, is_dose
from analysis.intervals.clustered import Part
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.influence import Counts, Floats, Mask, Sample, positions
from analysis.intervals.numbers import Numbers
from analysis.metrics import AUC
from analysis.settings import AnalysisSettings

FADING_SLOPE = "fading_slope"
"""Change of placement for each doubling of one plus the steps since, within examples."""
NOT_CONSTANT = "the learning rate is not constant"
RATE_WARNING = (
    "The learning rate was not constant, so texts seen at different times were learnt differently: "
    "AUCs by the steps since the last copy do not show what fades, whichever way they run. The "
    "change within examples does."
)
EVERY = "all"


def not_constant(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether some rows of `fading` are of a learning rate that was not constant."""
    return any(row["interval"].endswith(NOT_CONSTANT) for row in rows)


def since_bins(max_steps: int) -> list[CopiesCell]:
    """Return bins of steps since the last copy, up to that many.

    >>> [cell.label for cell in since_bins(9)]
    ['0', '1', '2-3', '4-7', '8-15']
    """
    bins, low = [CopiesCell("0", 0, 0)], 1
    while low <= max_steps:
        high = 2 * low - 1
        bins.append(CopiesCell(str(low) if low == high else f"{low}-{high}", low, high))
        low *= 2
    return bins


@dataclass(frozen=True, kw_only=True)
class PreparedCheckpoint:
    """One checkpoint of one cohort, over its seeds, made ready."""

    step: int
    tokens: int
    batch_tokens: int
    work: PreparedCohort
    since: Sequence[Counts]
    """For each seed: steps since the last copy by example; -1 if none was seen."""
    constant_rate: bool = True
    """Whether every step is made at the same learning rate."""


class Placed(NamedTuple):
    """The members of one dataset under one checkpoint that has seen them, [n]."""

    rows: Counts
    last: Counts
    """Step of the last copy."""
    doublings: Floats
    scores: Floats
    outside: Counts
    """Rows of the non-members."""
    outside_scores: Floats

    @property
    def since(self) -> Counts:
        """Steps since the last copy."""
        return np.rint(2**self.doublings - 1).astype(np.int64)

    def among(self, which: Mask) -> "Placed":
        """Return some of the members."""
        return self._replace(
            rows=self.rows[which],
            last=self.last[which],
            doublings=self.doublings[which],
            scores=self.scores[which],
        )


Checkpoints = Sequence[PreparedCheckpoint]
PlacedSeeds = Sequence[Mapping[str, tuple[Sequence[Placed], Counts, int]]]
"""For each seed by dataset: the members under each checkpoint, every row's group, and how many
groups there are."""


def fading_rows(
    checkpoints: Checkpoints, column: DetectorColumn, settings: AnalysisSettings
) -> list[dict[str, Any]]:
    """Return one detector setting's rows of the question `fading`, without axes and selection.

    Args:
        checkpoints: all checkpoints of the cohort.
        column: detector and setting.
        settings: how intervals are made.
    """
    scored = [
        checkpoint
        for checkpoint in checkpoints
        if all(column in arm.index for arm in checkpoint.work.loaded)
    ]
    copies: list[int] = []
    most = 0
    for checkpoint in scored:
        steps = np.concatenate(checkpoint.since)
        seen = checkpoint.work.sides(column)[0] & (steps >= 0)
        copies += checkpoint.work.copies[seen].tolist()
        most = max(most, int(steps[seen].max(initial=0)))
    rows = []
    for cell in copies_cells(copies, high_copies=settings.high_copies) if copies else ():
        if cell.low == 0:
            continue
        seeds = list(_place_datasets(scored, column, cell))
        own = [_fading_row(scored, seeds, since, settings) for since in since_bins(most)]
        if is_dose(cell.label) or cell.label == ALL:
            slopes = placed_numbers(seeds, IntervalMethod.SLOPE, slope_part)
            if slope := _row(*slopes[:2], settings):
                own.append({"steps_since_copy": EVERY, "metric": FADING_SLOPE, **slope})
        rows += [{**column._asdict(), "copies": cell.label, **row} for row in own if row]
    return rows


def _row(numbers: Numbers, pairs: int, settings: AnalysisSettings) -> dict[str, Any]:
    """Return the columns of a number; empty if there are too few members."""
    estimates = numbers.estimates(confidence=settings.confidence)
    if not estimates or estimates[0].members < settings.min_members:
        return {}
    return {**estimates[0].row(), "pairs": pairs}


def _fading_row(
    scored: Checkpoints, seeds: PlacedSeeds, since: CopiesCell, settings: AnalysisSettings
) -> dict[str, Any]:
    """Return the AUC of the pairs of one bin; empty if there are too few members."""

    def part(placed: Sequence[Placed], groups: Counts, n_groups: int) -> Made | None:
        in_bin = (placement.among(since.holds(placement.since)) for placement in placed)
        return mean_part([members for members in in_bin if len(members.rows)], groups, n_groups)

    numbers, pairs, steps = placed_numbers(seeds, IntervalMethod.AUC, part)
    row = _row(numbers, pairs, settings)
    if not row:
        return {}
    constant = all(checkpoint.constant_rate for checkpoint in scored)
    return {
        "steps_since_copy": since.label,
        "steps_since_copy_low": since.low,
        "steps_since_copy_high": since.high,
        "metric": AUC,
        **row,
        "interval": row["interval"] + ("" if constant else f"; {NOT_CONSTANT}"),
        "tokens_since_copy": steps / pairs * scored[0].batch_tokens,
    }


Made = tuple[Part, int, float]
"""The estimate of one dataset of one seed, its number of pairs of an example and a checkpoint, and
the steps since the last copy, summed over these."""


def placed_numbers(
    placed_seeds: PlacedSeeds,
    scale: IntervalMethod,
    part_of: Callable[[Sequence[Placed], Counts, int], Made | None],
) -> tuple[Numbers, int, float]:
    """Return one number of members with so many copies, its pairs, and the steps since of these.

    Args:
        placed_seeds: the members.
        scale: of the number.
        part_of: returns the estimate of a dataset of a seed, given its members under each
            checkpoint, the group of every row, and the number of groups.
    """
    seeds: list[dict[str, Part]] = []
    pairs, steps = 0, 0.0
    for datasets in placed_seeds:
        seeds.append({})
        for dataset, placed in datasets.items():
            if made := part_of(*placed):
                seeds[-1][dataset] = made[0]
                pairs, steps = pairs + made[1], steps + made[2]
    return Numbers(seeds, scale), pairs, steps


def slope_part(placed: Sequence[Placed], group_of_row: Counts, n_groups: int) -> Made | None:
    """Return the contribution of one dataset of one seed to the slope within examples.

    It is the change of placement (an AUC) for each doubling of one plus the steps since, of
    examples with two pairs or more; None if there are none.

    Args:
        placed: the members of one dataset under each checkpoint.
        group_of_row: of all rows that members and non-members are numbered by.
        n_groups: group numbers are below it.
    """
    rows = np.concatenate([placement.rows for placement in placed])
    stay = np.stack([rows, np.concatenate([placement.last for placement in placed])])
    _, index = np.unique(stay, axis=1, return_inverse=True)
    index = index.reshape(-1)
    sizes = np.bincount(index)
    doublings = np.concatenate([placement.doublings for placement in placed])
    apart = doublings - (np.bincount(index, doublings) / sizes)[index]
    total = float(np.square(apart).sum())
    if total <= 1e-12:
        return None
    below = np.concatenate([_share_below(placement) for placement in placed])
    slope = float((apart * below).sum() / total)
    left = below - (np.bincount(index, below) / sizes)[index] - slope * apart
    used = np.bincount(index, np.square(apart))[index] > 0
    inside = np.bincount(group_of_row[rows], weights=apart * left / total, minlength=n_groups)
    against = _nonmember_contributions(placed, apart / total)
    sample = _sample(slope, inside, rows[used], against, group_of_row)
    members = np.array([len(set(rows[used].tolist()))])
    return Part(sample, np.array([total]), members, len(against)), int(used.sum()), 0.0


def mean_part(placed: Sequence[Placed], group_of_row: Counts, n_groups: int) -> Made | None:
    """Return the mean placement of all pairs, an AUC; arguments as for `slope_part`."""
    if not placed:
        return None
    rows = np.concatenate([placement.rows for placement in placed])
    below = np.concatenate([_share_below(placement) for placement in placed])
    mean = float(below.mean())
    inside = np.bincount(group_of_row[rows], (below - mean) / len(rows), minlength=n_groups)
    against = _nonmember_contributions(placed, np.full(len(rows), 1 / len(rows)))
    part = Part(
        _sample(mean, inside, rows, against, group_of_row),
        np.array([float(len(rows))]),
        np.array([len(set(rows.tolist()))]),
        max(len(placement.outside) for placement in placed),
    )
    return part, len(rows), sum(float((2**placement.doublings - 1).sum()) for placement in placed)


def _sample(
    value: float,
    inside: npt.NDArray[Any],
    members: Counts,
    against: Mapping[int, float],
    group_of_row: Counts,
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


def _place_datasets(
    checkpoints: Checkpoints, column: DetectorColumn, cell: CopiesCell
) -> Iterator[dict[str, tuple[list[Placed], Counts, int]]]:
    """Yield `PlacedSeeds` of the members with so many copies seen by then."""
    names = dict.fromkeys(
        name for checkpoint in checkpoints for own in checkpoint.work.compared for name in own
    )
    seeds = {arm.arm.seed for checkpoint in checkpoints for arm in checkpoint.work.loaded}
    for seed in sorted(seeds):
        datasets = {}
        for dataset in names:
            placed, groups, n_groups = [], np.zeros(0, dtype=np.int64), 0
            for checkpoint in checkpoints:
                for at, arm in enumerate(checkpoint.work.loaded):
                    if arm.arm.seed != seed or dataset not in checkpoint.work.compared[at]:
                        continue
                    placement = _place_members(checkpoint, at, dataset, column, cell)
                    if placement is not None:
                        rows = checkpoint.work.rows
                        placed.append(placement)
                        groups, n_groups = rows.group[rows.seed == at], rows.n_groups[dataset]
            if placed:
                datasets[dataset] = placed, groups, n_groups
        yield datasets


def _place_members(
    checkpoint: PreparedCheckpoint, at: int, dataset: str, column: DetectorColumn, cell: CopiesCell
) -> Placed | None:
    arm, since = checkpoint.work.loaded[at], checkpoint.since[at]
    compared = checkpoint.work.compared[at][dataset].rows(column)
    inside = np.flatnonzero(compared & arm.member & (since >= 0) & cell.holds(arm.copies))
    outside = np.flatnonzero(compared & ~arm.member)
    if not len(inside) or len(outside) < 2:
        return None
    scores, steps = arm.scores[:, arm.index[column]], since[inside]
    doublings = np.log2(1.0 + steps)
    return Placed(
        inside, checkpoint.step - steps, doublings, scores[inside], outside, scores[outside]
    )


def _share_below(placement: Placed) -> Floats:
    """Return the share of non-members below each member, ties half."""
    lower, upper = positions(np.sort(placement.outside_scores), placement.scores)
    return (lower + upper) / (2 * len(placement.outside))


def _nonmember_contributions(placed: Sequence[Placed], weights: Floats) -> dict[int, float]:
    """Return each non-member's contribution to the slope, by its row: they sum to the slope."""
    contributions: dict[int, float] = {}
    start = 0
    for placement in placed:
        own_weights = weights[start : start + len(placement.rows)]
        start += len(placement.rows)
        order = np.argsort(placement.scores)
        running = np.concatenate([[0.0], np.cumsum(own_weights[order])])
        lower, upper = positions(placement.scores[order], placement.outside_scores)
        above = running[-1] - (running[lower] + running[upper]) / 2
        values = (above / len(placement.outside)).tolist()
        for row, value in zip(placement.outside.tolist(), values, strict=True):
            contributions[row] = contributions.get(row, 0.0) + value
    return contributions
