"""Simulated studies whose numbers of copies are laid out: each has as many groups as another."""

import numpy as np
from scipy.stats import norm

from analysis.intervals.clustered import Part
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.influence import Side, auc_sample, trend_sample
from scripts.calibration.others import LEVELS, Case, groups_text, rows_of_side, trend_truth

EFFECT = 1.0
"""The effect of doubling one plus the copies on a score, in its standard deviations."""


def level_cases() -> list[Case]:
    """Return AUCs of all members, and trends, with the levels as strata."""
    shifts = EFFECT * np.log2(1 + np.array(LEVELS))
    truths = {
        IntervalMethod.AUC: float(norm.cdf((shifts - shifts.mean()) / np.sqrt(2)).mean()),
        IntervalMethod.TREND: trend_truth(EFFECT),
    }
    return [
        Case(
            f"{scale.name} of {rows} members, {groups_text(group)}",
            truths[scale],
            scale,
            lambda random, scale=scale, rows=rows, group=group: _study(
                random, scale, (rows, group)
            ),
        )
        for scale in (IntervalMethod.AUC, IntervalMethod.TREND)
        for rows, group in ((24, 1), (100, 1), (400, 1), (400, 4))
    ]


def _study(
    random: np.random.Generator, scale: IntervalMethod, size: tuple[int, int]
) -> dict[str, Part]:
    rows, group = size
    members = rows_of_side(random, rows, group)
    others = rows_of_side(random, rows, group, int(members.groups.max()) + 1)
    copies = np.array(LEVELS)[members.groups % len(LEVELS)]
    shifts = EFFECT * np.log2(1 + copies)
    shifts -= EFFECT * float(np.log2(1 + np.array(LEVELS)).mean())
    moved = Side(members.scores + shifts, members.groups)
    n_groups = int(others.groups.max()) + 1
    if scale is IntervalMethod.TREND:
        sample, pairs = trend_sample(moved, copies, n_groups, copies)
        return {"": Part(sample, np.array([pairs]))}
    everyone = np.ones((1, rows), dtype=bool)
    return {"": Part(auc_sample(moved, others, everyone, n_groups, copies), np.ones(1))}
