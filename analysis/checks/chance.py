"""Are detectors at chance where they must be? One rule for all the AUCs that a check shows.

*Fails* if any of the m AUCs shown is farther from 0.5 than whole groups assigned to the sides at
random would put it, corrected for m times the checks that a page can have (Bonferroni): without any
bias at most one page in twenty shows a failed check, not one check in twenty. The chance is that of
the rank-sum test of clustered rows (Rosner, Glynn and Lee 2003): the sides were drawn so, and where
no model saw either, no seed and no training adds to it. It holds with few groups and unequal ones,
where an interval about the AUC that was found would not: simulated in scripts/calibration/cells.

*Passes* only if, moreover, each interval over all datasets is within 0.5 ± 0.1: missing a bias
is not evidence. Else the rows *cannot tell*, and the check reports the bias that they could have
missed.

Each AUC has its 95 % interval, which is not corrected for their number. What a check *leaves room
for* reaches from the lowest end of these to the highest and, unless the check failed, to 0.5: the
interval of the equivalence test (Hsu et al. 1994). It holds *all* AUCs at once with 95 %, since the
highest AUC is above all ends only if it is above its own (intersection and union: Berger 1982).
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, nan, sqrt

import numpy as np

from analysis.arm import DetectorColumn
from analysis.auc_cells import PreparedCohort
from analysis.copy_bins import CopiesCell
from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Floats
from analysis.intervals.rows import Rows

CHANCE = 0.5
MARGIN = 0.1
"""The largest bias, in AUC, that a passed check may have missed."""
CHECKS = 4
"""Checks of AUCs that a page can have: blind, base model, zero copies, clean twin."""
_TAIL = 0.025


def dealing_error(rows: Rows, scores: Floats) -> float:
    """Return the standard error of an AUC if whole groups are assigned to sides at random.

    The difference of the sides' mean ranks is the AUC less a half, so a group moves it by the sum
    of its rows' ranks, each about the mean rank of both sides (Rosner, Glynn and Lee 2003). Each
    dataset counts by its members, seeds alike; NaN if no dataset has both sides.
    """
    from scipy.stats import rankdata

    either = rows.member | rows.nonmember
    compared = ({name: at[either[at]] for name, at in seed.items()} for seed in rows.places)
    both_sides = (
        {name: at for name, at in seed.items() if 0 < rows.member[at].sum() < len(at)}
        for seed in compared
    )
    seeds = [seed for seed in both_sides if seed]
    moved: dict[tuple[str, int], float] = {}
    for seed in seeds:
        members = sum(int(rows.member[at].sum()) for at in seed.values())
        for name, at in seed.items():
            count, inside = len(at), int(rows.member[at].sum())
            rank = (rankdata(scores[at]) - (count + 1) / 2) / count
            parts = np.where(rows.member[at], 1 / inside, -1 / (count - inside)) * rank
            groups = len(np.unique(rows.group[at]))
            parts *= sqrt(groups / max(groups - 1, 1)) * inside / members / len(seeds)
            for group, part in zip(rows.group[at].tolist(), parts.tolist(), strict=True):
                moved[name, group] = moved.get((name, group), 0.0) + part
    return sqrt(sum(part**2 for part in moved.values())) if moved else float("nan")


def column_error(
    work: PreparedCohort, column: DetectorColumn, cell: CopiesCell, dataset: str | None = None
) -> float:
    """Return `dealing_error` of one column's AUC.

    Args:
        work: the cohort.
        column: the detector's setting.
        cell: which members.
        dataset: which; None for all of them.
    """
    inside, outside = work.sides(column)
    inside_dataset = np.ones_like(inside) if dataset is None else work.rows.dataset == dataset
    member = inside & inside_dataset & cell.holds(work.copies)
    rows = replace(work.rows, member=member, nonmember=outside & inside_dataset)
    return dealing_error(rows, work.scores(column))


def off_chance(rows: Sequence[Row]) -> list[int]:
    """Return the indices of AUCs significantly off 0.5, corrected for all AUCs and checks."""
    return [
        at
        for at, row in enumerate(rows)
        if abs(row["value"] - CHANCE) > chance_width(row, CHECKS * len(rows))
    ]


def chance_width(row: Row, number: int) -> float:
    """Return the distance from 0.5 that chance explains for an AUC, as one of `number` AUCs."""
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
    low = min([*(auc.low for auc in aucs), *chance])
    return Estimate(nan, low, max([*(auc.high for auc in aucs), *chance]))


def within_margin(room: Estimate) -> bool:
    """Return whether both ends are as near to 0.5 as a passed check requires."""
    return room.low >= CHANCE - MARGIN and room.high <= CHANCE + MARGIN
