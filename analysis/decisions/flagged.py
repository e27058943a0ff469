"""Which rows a detector flags as members at a false-discovery level, and how many are not.

Rows that no model saw calibrate the p-values, each dataset by its own. All rows of a pool are
decided together (Benjamini-Hochberg over datasets and sides), each detector by itself: the level
holds for one detector, not for the best of several.

In a run, non-members of the split `tune` calibrate: they are drawn as those of `test` are, and are
only used for calibration. The detector's *default* setting decides: the one that was chosen on
`tune` was chosen to set these very rows apart, so they could not calibrate it. Of a user's file
held-out rows calibrate each setting, and every row is decided; without them, where labels are
known, a random half of the groups of non-members calibrates and all other rows are decided, which
shows how such decisions fare. Which half it is depends on the groups alone.

Simulated with known truth in tests/analysis/decisions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arm import Cohort, LoadedArm
from analysis.decisions.conformal import benjamini_hochberg, conformal_p_values
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings
from inject import keyed

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


class Decision(NamedTuple):
    """What one setting flags in one pool of rows."""

    flagged: Mask
    decided: Mask
    """Rows with a p-value, of those that were to be decided."""
    calibration_rows: int
    calibration_groups: int
    smallest_p: float
    """The smallest p-value that a row can have."""


def decide(
    scores: Floats,
    dataset: npt.NDArray[np.object_],
    group: npt.NDArray[np.object_],
    calibrates: Mask,
    wanted: Mask,
    *,
    level: float,
) -> Decision | None:
    """Return which rows are flagged; None if no row with a score calibrates.

    Args:
        scores: of the rows, as the next three for `p_values`.
        dataset: of each row.
        group: of each row.
        calibrates: the rows that calibrate.
        wanted: the rows that are to be decided.
        level: of false discoveries.
    """
    usable = calibrates & ~np.isnan(scores)
    if not usable.any():
        return None
    p = p_values(scores, dataset, group, usable)
    decided = wanted & ~np.isnan(p)
    flagged = np.zeros(len(p), np.bool_)
    flagged[decided] = benjamini_hochberg(p[decided].tolist(), level)
    fewest = min(len(set(group[usable & (dataset == name)])) for name in set(dataset[usable]))
    groups = len(set(group[usable]))
    return Decision(flagged, decided, int(usable.sum()), groups, 1 / (1 + fewest))


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
        here = np.ones(len(arm.member), np.bool_) if part == POOLED else arm.dataset == part
        seen = _seen(arm)
        wanted = here & arm.test & (seen | _unseen(arm, seen, settings))
        scores, calibrates = arm.scores[:, arm.index[column]], here & ~arm.member & ~arm.test
        found = decide(scores, arm.dataset, arm.group, calibrates, wanted, level=level)
        if found is None:
            continue
        wrong.append(~seen[found.flagged])
        groups += arm.group[found.flagged].tolist()
        counts["calibration_rows"] += found.calibration_rows
        counts["calibration_groups"] += found.calibration_groups
        counts["n_members"] += int((found.decided & seen).sum())
        counts["n_nonmembers"] += int((found.decided & ~seen).sum())
        counts["unscored"] += int((wanted & ~found.decided).sum())
        smallest = float(np.fmin(smallest, found.smallest_p))
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


class Calibration(NamedTuple):
    """The scores of held-out rows."""

    scores: pa.Table
    """As `detect.scores.table.SCHEMA`; rows are those of the held-out texts."""
    groups: tuple[str, ...]
    """One a held-out text; texts of one group share a passage."""


class FileDecision(NamedTuple):
    """What one setting flags."""

    detector: str
    setting: str
    calibration_rows: int
    calibration_groups: int
    decided: int
    """Rows with a p-value."""
    smallest_p: float
    """The smallest p-value that a row can have."""
    flagged: tuple[int, ...]
    """The rows that are flagged."""
    nonmembers: int | None
    """How many of them are non-members; None without labels."""
    share: Estimate | None
    """Their share of the flagged; None without labels."""


def decide_rows(
    scores: pa.Table,
    *,
    labels: Sequence[bool] | None,
    groups: Sequence[str | None] | None,
    calibration: Calibration | None,
    settings: AnalysisSettings | None = None,
) -> list[FileDecision]:
    """Return a decision for each setting that can be calibrated, in the order of the scores.

    Args:
        scores: row, detector, setting, score; higher = member.
        labels: True for members; None where they are not known.
        groups: rows that share a passage; None is a group of its own.
        calibration: scores of held-out rows; None where there are none.
        settings: the level and the confidence; defaults where not given.
    """
    how = settings or AnalysisSettings()
    if calibration is None and labels is None:
        return []
    columns = _columns(scores)
    count = max((len(values) for values in columns.values()), default=0)
    names = group_names(groups, count)
    apart, held_out = np.zeros(0, dtype=object), {}
    half = np.zeros(count, np.bool_)
    if calibration is None:
        half = _half_of_nonmembers(labels or [], names)
    else:
        apart, held_out = np.array(calibration.groups, dtype=object), _columns(calibration.scores)
    every = np.concatenate([names, apart])
    calibrates = np.concatenate([half, np.ones(len(apart), np.bool_)])
    found = []
    for key, values in columns.items():
        both = np.concatenate([values, held_out.get(key, np.full(len(apart), np.nan))])
        one_dataset = np.full(len(both), "", dtype=object)
        decision = decide(
            both, one_dataset, every, calibrates, ~calibrates, level=how.false_discovery_rate
        )
        if decision is None:
            continue
        flagged = decision.flagged[:count]
        wrong = None if labels is None else ~np.asarray(labels, np.bool_)[flagged]
        found.append(
            FileDecision(
                *key,
                calibration_rows=decision.calibration_rows,
                calibration_groups=decision.calibration_groups,
                decided=int(decision.decided.sum()),
                smallest_p=decision.smallest_p,
                flagged=tuple(np.flatnonzero(flagged).tolist()),
                nonmembers=None if wrong is None else int(wrong.sum()),
                share=None
                if wrong is None
                else clustered_share(wrong, names[flagged].tolist(), confidence=how.confidence),
            )
        )
    return found


def group_names(groups: Sequence[str | None] | None, rows: int) -> np.ndarray:
    """Return the group of each row; a row without one is a group of its own."""
    named: Sequence[str | None] = [None] * rows if groups is None else groups
    return np.array(
        [f"row {row}" if name is None else f"group {name}" for row, name in enumerate(named)],
        dtype=object,
    )


def scores_by_setting(scores: pa.Table, n: int) -> dict[tuple[str, str], np.ndarray]:
    """Return each setting's scores by row, NaN if it has none."""
    found: dict[tuple[str, str], np.ndarray] = {}
    names = zip(scores["detector"].to_pylist(), scores["setting"].to_pylist(), strict=True)
    values = zip(scores["row"].to_pylist(), scores["score"].to_pylist(), strict=True)
    for key, (row, score) in zip(names, values, strict=True):
        column = found.setdefault(key, np.full(n, np.nan))
        column[row] = np.nan if score is None else score
    return found


def _half_of_nonmembers(labels: Sequence[bool], names: np.ndarray) -> np.ndarray:
    """Return which rows calibrate: half of the groups without a member, by a keyed draw."""
    member = np.asarray(labels, np.bool_)
    mixed = set(names[member])
    clean = sorted({str(name) for name in names[~member]} - mixed)
    words = keyed.words(
        0, keyed.Stream.BOOTSTRAP, keyed.item_keys([f"half {one}" for one in clean])
    )
    order = [name for _, name in sorted(zip(words.tolist(), clean, strict=True))]
    half = set(order[: len(order) // 2])
    return np.array([name in half for name in names], dtype=np.bool_)


def _columns(scores: pa.Table) -> dict[tuple[str, str], np.ndarray]:
    return scores_by_setting(scores, max(scores["row"].to_pylist(), default=-1) + 1)
