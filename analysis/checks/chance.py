"""Are detectors at chance where they must be? One rule for all the AUCs that a check shows.

*Fails* where any of the m AUCs shown lies farther from 0.5 than whole groups dealt to the sides at
random would put it, corrected for m times the checks that a page can have (Bonferroni): without any
bias at most one page in twenty shows a failed check, not one check in twenty. The chance is that of
the rank-sum test of clustered rows (Rosner, Glynn and Lee 2003): the sides were dealt so, and where
no model saw either, no seed and no training adds to it. It holds with few groups and unequal ones,
where an interval about the AUC that was found would not: simulated in scripts/calibration/cells.

*Passes* only where, moreover, each interval over all datasets lies within 0.5 ± 0.1: to miss a bias
is no finding. Else the rows *cannot tell*, and what they could have missed is said.

Each AUC has its 95 % interval, which is not corrected for their number. What a check *leaves room
for* reaches from the lowest end of these to the highest and, unless the check failed, to 0.5: the
interval of the equivalence test (Hsu et al. 1994). It holds *all* AUCs at once with 95 %, since the
highest AUC is above all ends only if it is above its own (intersection and union: Berger 1982).
"""

from collections.abc import Sequence
from math import isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np

from analysis.arm import Column
from analysis.auc_cells import ArmRows, compared_sides
from analysis.copy_bins import CopiesCell
from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Counts, Mask
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings

CHANCE = 0.5
MARGIN = 0.1
"""The largest bias, in AUC, that a passed check may have missed."""
CHECKS = 4
"""Checks of AUCs that a page can have: blind, base model, zero copies, clean twin."""
_TAIL = 0.025


class Dealt(NamedTuple):
    """The rows of one dataset under one model."""

    dataset: str
    scores: Floats
    member: Mask
    group: Counts
    """Number of each row's group, one and the same in every seed."""


def dealing_error(seeds: Sequence[Sequence[Dealt]]) -> float:
    """Return the standard error of an AUC where whole groups are dealt to the sides at random.

    The difference of the sides' mean ranks is the AUC less a half, so a group moves it by the sum
    of its rows' ranks, each about the mean rank of both sides (Rosner, Glynn and Lee 2003). Each
    dataset counts by its members, seeds alike; NaN where no dataset has both sides.
    """
    from scipy.stats import rankdata

    moved: dict[tuple[str, int], float] = {}
    known = [[one for one in seed if 0 < one.member.sum() < len(one.member)] for seed in seeds]
    known = [seed for seed in known if seed]
    for seed in known:
        members = sum(int(one.member.sum()) for one in seed)
        for one in seed:
            rows, inside = len(one.scores), int(one.member.sum())
            rank = (rankdata(one.scores) - (rows + 1) / 2) / rows
            parts = np.where(one.member, 1 / inside, -1 / (rows - inside)) * rank
            groups = len(np.unique(one.group))
            parts *= sqrt(groups / max(groups - 1, 1)) * inside / members / len(known)
            for group, part in zip(one.group.tolist(), parts.tolist(), strict=True):
                moved[one.dataset, group] = moved.get((one.dataset, group), 0.0) + part
    return sqrt(sum(part**2 for part in moved.values())) if moved else float("nan")


def column_error(
    arms: Sequence[ArmRows],
    column: Column,
    cell: CopiesCell,
    settings: AnalysisSettings,
    dataset: str | None = None,
) -> float:
    """Return `dealing_error` of one column's AUC.

    Args:
        arms: one a seed.
        column: the detector's setting.
        cell: which members.
        settings: whether members without a copy are non-members.
        dataset: which; None for all of them.
    """
    seeds: list[list[Dealt]] = []
    for arm in arms:
        scores = arm.loaded.scores[:, arm.loaded.index[column]]
        seeds.append([])
        for name in [one for one in arm.compared if dataset in (None, one)]:
            inside, outside = compared_sides(arm.loaded, arm.compared[name].rows(column), settings)
            inside &= cell.holds(arm.loaded.copies)
            rows = inside | outside
            seeds[-1].append(Dealt(name, scores[rows], inside[rows], arm.groups.of_row[rows]))
    return dealing_error(seeds)


def off_chance(rows: Sequence[Row]) -> list[int]:
    """Return which AUCs lie farther from 0.5 than chance, for their number and the checks'."""
    return [
        at
        for at, row in enumerate(rows)
        if abs(row["value"] - CHANCE) > chance_width(row, CHECKS * len(rows))
    ]


def chance_width(row: Row, number: int) -> float:
    """Return how far from 0.5 chance puts an AUC, as one of `number` that are looked at."""
    from scipy.stats import norm

    error = row["chance_error"]
    if error is None or not isfinite(error):
        # A row without: that of independent examples (Mann and Whitney 1947).
        members, others = max(row["n_members"], 1), max(row["n_nonmembers"], 1)
        error = sqrt((members + others + 1) / (12 * members * others))
    return float(norm.isf(_TAIL / number)) * error


def possible_auc(row: Row) -> Estimate:
    """Return an AUC with what its interval still holds possible: no less than chance does."""
    auc = Estimate.of(row)
    if not auc.available:
        return auc
    least = chance_width(row, 1)
    low, high = min(auc.low, auc.value - least), max(auc.high, auc.value + least)
    return auc._replace(low=max(0.0, low), high=min(1.0, high))


def joint_room(aucs: Sequence[Estimate], *, failed: bool) -> Estimate:
    """Return the AUCs that several leave room for together, 0.5 included unless failed."""
    chance = [] if failed else [CHANCE]
    low = min([*(one.low for one in aucs), *chance])
    return Estimate(nan, low, max([*(one.high for one in aucs), *chance]))


def within_margin(room: Estimate) -> bool:
    """Say whether both ends are as near to 0.5 as a passed check asks."""
    return room.low >= CHANCE - MARGIN and room.high <= CHANCE + MARGIN
