"""Which test rows a detector flags as members at a false-discovery level, and how many are not.

Non-members of the split `tune` calibrate the p-values, each dataset by its own: they are drawn as
those of `test` are, and are only used for calibration. The detector's *default* setting decides:
the one that was chosen on `tune` was chosen to set these very rows apart, so they could not
calibrate it. All rows of a pool are decided together (Benjamini-Hochberg over datasets and sides),
each detector by itself: the level holds for one detector, not for the best of several.

Simulated with known truth in tests/analysis/decisions/test_flagged.py.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.arm import Cohort, LoadedArm
from analysis.decisions.conformal import benjamini_hochberg, conformal_p_values
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

POOLED = "all"


def flagged_rows(
    cohort: Cohort,
    loaded: Sequence[LoadedArm],
    choices: Sequence[Choice],
    settings: AnalysisSettings,
) -> list[dict[str, Any]]:
    """Return a row for each detector and dataset of a cohort; none without a split `tune`.

    Args:
        cohort: which arm.
        loaded: its models, one a seed; rows are flagged in each by itself, and counted together.
        choices: the settings chosen on `tune`, which decide nothing here.
        settings: of the analysis.
    """
    names = list(dict.fromkeys(name for arm in loaded for name in arm.dataset))
    parts = [POOLED, *(names if len(names) > 1 else ())]
    detectors = dict.fromkeys(name for arm in loaded for name in arm.detectors)
    found = [
        _row(cohort, loaded, detector, part, settings) for detector in detectors for part in parts
    ]
    return [row for row in found if row is not None]


def p_values(
    scores: Floats,
    dataset: npt.NDArray[np.object_],
    group: npt.NDArray[np.object_],
    calibrates: Mask,
) -> Floats:
    """Return the conformal p-value of every row, by the calibrating rows of its own dataset.

    Args:
        scores: of the rows; NaN where there is none.
        dataset: of each row.
        group: of each row; groups of different datasets have different names.
        calibrates: the rows, all of non-members, that calibrate; the p-values of these say nothing.

    Returns:
        One p-value a row; NaN where the row has no score, or its dataset no calibrating one.
    """
    found = np.full(len(scores), np.nan)
    usable = calibrates & ~np.isnan(scores)
    for name in dict.fromkeys(dataset):
        here = dataset == name
        by = here & usable
        if by.any():
            found[here] = conformal_p_values(scores[here], scores[by], group[by].tolist())
    return found


def clustered_share(wrong: Mask, groups: Sequence[str], *, confidence: float) -> Estimate:
    """Return a share with an interval that holds where rows of a group go together.

    Clopper and Pearson's interval for as many rows as the groups are worth if all rows of a group
    were alike, (Σ m)² / Σ m² of group sizes m (Kish 1965): too wide where they differ, never a
    point where no row, or every row, is wrong.
    """
    from scipy.stats import beta

    if not len(wrong):
        return no_estimate("nothing is flagged")
    sizes = np.unique(np.array(groups, dtype=str), return_counts=True)[1].astype(np.float64)
    worth = float(sizes.sum() ** 2 / (sizes**2).sum())
    share = float(np.mean(wrong))
    count, tail = share * worth, (1 - confidence) / 2
    low = 0.0 if count <= 0 else float(beta.ppf(tail, count, worth - count + 1))
    high = 1.0 if count >= worth else float(beta.ppf(1 - tail, count + 1, worth - count))
    return Estimate(share, low, high)


def _row(
    cohort: Cohort,
    loaded: Sequence[LoadedArm],
    detector: str,
    part: str,
    settings: AnalysisSettings,
) -> dict[str, Any] | None:
    level = settings.false_discovery_rate
    counts = dict.fromkeys(
        ("calibration_rows", "calibration_groups", "n_members", "n_nonmembers", "unscored"), 0
    )
    wrong: list[Mask] = []
    groups: list[str] = []
    smallest, seeds, setting = float("nan"), 0, ""
    for arm in loaded:
        if detector not in arm.detectors:
            continue
        column = arm.default(detector)
        scores = arm.scores[:, arm.index[column]]
        here = np.ones(len(scores), np.bool_) if part == POOLED else arm.dataset == part
        calibrates = here & ~arm.member & ~arm.test & ~np.isnan(scores)
        if not calibrates.any():
            continue
        seen = _seen(arm)
        p = p_values(scores, arm.dataset, arm.group, calibrates)
        decided = here & arm.test & (seen | _unseen(arm, seen, settings))
        there = decided & ~np.isnan(p)
        flagged = np.zeros(len(p), np.bool_)
        flagged[there] = benjamini_hochberg(p[there].tolist(), level)
        wrong.append(~seen[flagged])
        groups += arm.group[flagged].tolist()
        counts["calibration_rows"] += int(calibrates.sum())
        counts["calibration_groups"] += len(set(arm.group[calibrates]))
        counts["n_members"] += int((there & seen).sum())
        counts["n_nonmembers"] += int((there & ~seen).sum())
        counts["unscored"] += int((decided & np.isnan(p)).sum())
        smallest = float(np.fmin(smallest, _smallest(arm, calibrates)))
        seeds, setting = seeds + 1, column.setting
    if not seeds:
        return None
    every = np.concatenate(wrong)
    share = clustered_share(every, groups, confidence=settings.confidence)
    right = int((~every).sum())
    return {
        **cohort.place(),
        "dataset": part,
        "detector": detector,
        "setting": setting,
        "level": level,
        **counts,
        "smallest_p": smallest,
        "flagged": len(every),
        "flagged_nonmembers": len(every) - right,
        "false_share": share.value,
        "low": share.low,
        "high": share.high,
        "members_found": right / counts["n_members"] if counts["n_members"] else float("nan"),
        "n_seeds": seeds,
    }


def _seen(arm: LoadedArm) -> Mask:
    """Return which rows the model saw; none where it saw no member by design."""
    if arm.arm.copies is None:
        return np.zeros(len(arm.member), np.bool_)
    return arm.member & (arm.copies > 0)


def _unseen(arm: LoadedArm, seen: Mask, settings: AnalysisSettings) -> Mask:
    """Return which rows count as not seen: members that drew no copy where they are to."""
    if arm.arm.copies is None or settings.zero_copies == "nonmember":
        return ~seen
    return ~arm.member


def _smallest(arm: LoadedArm, calibrates: Mask) -> float:
    """Return the smallest p-value that a row can have."""
    return min(
        1 / (1 + len(set(arm.group[calibrates & (arm.dataset == name)])))
        for name in set(arm.dataset[calibrates])
    )
