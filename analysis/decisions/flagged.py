"""Which rows a detector flags as members at a false-discovery level, and how many are not.

Rows that no model saw calibrate a detector: the p-value of a text is the share of them, the text
itself counted, that score as high. If held-out rows and scored non-members are exchangeable, which
the draw of held-out rows provides (`inject.examples.pool`), a p-value of a non-member is at most t
with probability at most t, for any detector and distribution (Vovk et al. 2005). Benjamini
and Hochberg (1995) then pick texts so that the expected share of non-members among those picked is
at most the level times the share of non-members: conformal p-values from one calibration set depend
on one another in the way that the rule allows (Bates et al. 2023). No p-value is below
1 / (held-out rows + 1), so a low level requires many held-out rows; of rows that share passages,
that many groups. All rows of a pool are decided together, over datasets and sides, each detector by
itself: the level holds for one detector, not for the best of several.

In a run, non-members of the split `tune` calibrate, each dataset by its own: they are drawn as
those of `test` are, and are only used for calibration. The detector's *default* setting decides:
the one that was chosen on `tune` was chosen to set these very rows apart, so they could not
calibrate it. A user's file is one arm of one dataset: held-out rows calibrate each setting, and
every row is decided; without them, if labels are known, a random half of the groups of non-members
calibrates and all other rows are decided, which shows how such decisions fare. Which half it is
depends only on the groups.

Simulated with known truth in tests/analysis/decisions.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arm import DetectorColumn, LoadedArm, Names, file_arm
from analysis.auc_cells import PreparedCohort
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Floats, Mask
from analysis.metrics import POOLED
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings
from inject import keyed
from inject.errors import InputError


def conformal_p_values(
    scores: Sequence[float], held_out: Sequence[float], groups: Sequence[str] | None = None
) -> Floats:
    """Return the p-value of each score: (1 + held-out scores as high) / (1 + held-out scores).

    Where held-out texts share passages, a group counts as one text: with the share of its texts
    that score as high (Lee, Barber and Willett 2024, hierarchical conformal prediction). Counted
    each, they would make p-values too small.

    Args:
        scores: of texts, larger for members; NaN if absent, which stays NaN.
        held_out: of texts that the model has not seen; NaN scores are omitted. groups: of
        the held-out texts; None if each text is its own group.

    Raises:
        InputError: no held-out score is left.
    """
    calibration = np.asarray(held_out, dtype=np.float64)
    calibrated = ~np.isnan(calibration)
    names = np.arange(len(calibration)) if groups is None else np.asarray(groups, dtype=str)
    group_names, of, sizes = np.unique(names[calibrated], return_inverse=True, return_counts=True)
    if not len(group_names):
        raise InputError("no held-out row has a score to calibrate with")
    order = np.argsort(calibration[calibrated], kind="stable")
    ordered = calibration[calibrated][order]
    # The weight of all that is at least as high as each place; nothing is as high as the end.
    weight = np.append(np.cumsum((1 / sizes)[of][order][::-1])[::-1], 0.0)
    values = np.asarray(scores, dtype=np.float64)
    # Thirds that sum to 1 but for the last bit are 1.
    as_high = np.round(weight[np.searchsorted(ordered, values, side="left")], 9)
    return np.where(np.isnan(values), np.nan, (1 + as_high) / (1 + len(group_names)))


def benjamini_hochberg(p_values: Sequence[float], level: float) -> npt.NDArray[np.bool_]:
    """Return which hypotheses "this text is not a member" are rejected at a false-discovery level.

    Args:
        p_values: of the texts; a text without one (NaN) is never picked and does not count.
        level: the expected share of wrong picks that is allowed.

    Raises:
        InputError: a level outside 0 to 1.
    """
    if not 0 < level < 1:
        raise InputError(f"a false-discovery level of {level:g}", allowed="above 0 and below 1")
    from scipy.stats import false_discovery_control

    values = np.asarray(p_values, dtype=np.float64)
    measured = np.flatnonzero(~np.isnan(values))
    picked = np.zeros(len(values), dtype=np.bool_)
    if len(measured):
        # A p-value that is level · rank / number but for the last bit is picked.
        picked[measured] = false_discovery_control(values[measured]) <= level * (1 + 1e-12)
    return picked


def flagged_rows(work: PreparedCohort, _: Sequence[Choice] = ()) -> list[dict[str, Any]]:
    """Return a row for each detector and dataset of a cohort; none without a split `tune`.

    The settings chosen on `tune` decide nothing here.

    Args:
        work: the cohort; rows are flagged under each model separately, and counted together.
    """
    names = list(dict.fromkeys(name for arm in work.loaded for name in arm.dataset))
    parts = [POOLED, *(names if len(names) > 1 else ())]
    detectors = dict.fromkeys(name for arm in work.loaded for name in arm.detectors)
    rows = [_row(work, detector, part) for detector in detectors for part in parts]
    return [row for row in rows if row is not None]


def p_values(scores: Floats, dataset: Names, group: Names, calibrates: Mask) -> Floats:
    """Return the conformal p-value of every row, by the calibrating rows of its own dataset.

    Args:
        scores: of the rows; NaN if absent.
        dataset: of each row.
        group: of each row; groups of different datasets have different names.
        calibrates: the calibrating rows, all of non-members; their own p-values mean nothing.

    Returns:
        One p-value per row; NaN if the row has no score, or its dataset has no calibrating score.
    """
    p_value = np.full(len(scores), np.nan)
    usable = calibrates & ~np.isnan(scores)
    for name in dict.fromkeys(dataset):
        in_dataset = dataset == name
        by = in_dataset & usable
        if by.any():
            groups = group[by].tolist()
            p_value[in_dataset] = conformal_p_values(scores[in_dataset], scores[by], groups)
    return p_value


class Decision(NamedTuple):
    """The rows that one setting flags in one pool."""

    flagged: Mask
    decided: Mask
    """Rows with a p-value, of those that were to be decided."""
    calibration: tuple[int, int]
    """The rows that calibrate, and their groups."""
    smallest_p: float
    """The smallest p-value that a row can have."""


def decide(
    arm: LoadedArm, column: DetectorColumn, calibrates: Mask, candidates: Mask, *, level: float
) -> Decision | None:
    """Return which rows are flagged; None if no row with a score calibrates.

    Args:
        arm: the pool.
        column: the setting that decides.
        calibrates: the rows that calibrate, all of non-members.
        candidates: the rows that are to be decided.
        level: of false discoveries.
    """
    scores = arm.scores[:, arm.index[column]]
    usable = calibrates & ~np.isnan(scores)
    if not usable.any():
        return None
    p = p_values(scores, arm.dataset, arm.group, usable)
    decided = candidates & ~np.isnan(p)
    flagged = np.zeros(len(p), np.bool_)
    flagged[decided] = benjamini_hochberg(p[decided].tolist(), level)
    datasets = set(arm.dataset[usable])
    fewest = min(len(set(arm.group[usable & (arm.dataset == name)])) for name in datasets)
    counts = int(usable.sum()), len(set(arm.group[usable]))
    return Decision(flagged, decided, counts, 1 / (1 + fewest))


def clustered_share(wrong: Mask, groups: Sequence[str], *, confidence: float) -> Estimate:
    """Return a share with an interval that is valid if rows of a group are correlated.

    Clopper and Pearson's interval for as many rows as the groups are worth if all rows of a group
    were alike, (Σ m)² / Σ m² of group sizes m (Kish 1965): too wide if they differ, never a
    point if no row, or every row, is wrong.
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


def _row(work: PreparedCohort, detector: str, part: str) -> dict[str, Any] | None:
    settings = work.settings
    wrong: list[Mask] = []
    groups: list[str] = []
    counts: list[tuple[int, ...]] = []
    smallest, setting = float("nan"), ""
    for arm in work.loaded:
        if detector not in arm.detectors:
            continue
        column = arm.default(detector)
        in_dataset = np.ones(len(arm.member), np.bool_) if part == POOLED else arm.dataset == part
        seen = seen_rows(arm)
        decided = in_dataset & arm.test & (seen | unseen_rows(arm, seen, settings))
        calibrates = in_dataset & ~arm.member & ~arm.test
        decision = decide(arm, column, calibrates, decided, level=settings.false_discovery_rate)
        if decision is None:
            continue
        wrong.append(~seen[decision.flagged])
        groups += arm.group[decision.flagged].tolist()
        masks = (decision.decided & seen, decision.decided & ~seen, decided & ~decision.decided)
        counts.append((*decision.calibration, *(int(mask.sum()) for mask in masks)))
        smallest, setting = float(np.fmin(smallest, decision.smallest_p)), column.setting
    if not counts:
        return None
    wrong_rows = np.concatenate(wrong)
    share = clustered_share(wrong_rows, groups, confidence=settings.confidence)
    rows, of_groups, members, nonmembers, unscored = map(sum, zip(*counts, strict=True))
    right = int((~wrong_rows).sum())
    return {
        **work.cohort.place(),
        "dataset": part,
        "detector": detector,
        "setting": setting,
        "level": settings.false_discovery_rate,
        "calibration_rows": rows,
        "calibration_groups": of_groups,
        "n_members": members,
        "n_nonmembers": nonmembers,
        "unscored": unscored,
        "smallest_p": smallest,
        "flagged": len(wrong_rows),
        "flagged_nonmembers": len(wrong_rows) - right,
        "false_share": share.value,
        "low": share.low,
        "high": share.high,
        "members_found": right / members if members else float("nan"),
        "n_seeds": len(counts),
    }


def seen_rows(arm: LoadedArm) -> Mask:
    """Return a mask of the rows that the model saw; all False if it saw no member by design."""
    if arm.arm.copies is None:
        return np.zeros(len(arm.member), np.bool_)
    return arm.member & (arm.copies > 0)


def unseen_rows(arm: LoadedArm, seen: Mask, settings: AnalysisSettings) -> Mask:
    """Return a mask of unseen rows; members that drew no copy count by the setting."""
    if arm.arm.copies is None or settings.zero_copies == "nonmember":
        return ~seen
    return ~arm.member


class Calibration(NamedTuple):
    """The scores of held-out rows."""

    scores: pa.Table
    """As `detect.scores.table.SCHEMA`; rows are those of the held-out texts."""
    groups: tuple[str, ...]
    """One per held-out text; texts of one group share a passage."""


class FileDecision(NamedTuple):
    """The rows that one setting flags."""

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
    """Number of non-members among them; None without labels."""
    share: Estimate | None
    """Their share of the flagged; None without labels."""


def decide_rows(
    scores: pa.Table,
    *,
    labels: Sequence[bool] | None,
    groups: Sequence[str | None] | None,
    calibration: Calibration | None,
) -> list[FileDecision]:
    """Return a decision for each setting that can be calibrated, in the order of the scores.

    Args:
        scores: row, detector, setting, score; higher = member.
        labels: True for members; None if unknown.
        groups: rows that share a passage; None is a separate
        group. calibration: scores of held-out rows; None if absent.
    """
    settings = AnalysisSettings()
    if calibration is None and labels is None:
        return []
    count = max(scores["row"].to_pylist(), default=-1) + 1
    arm = file_arm(scores, count, labels, groups)
    if calibration is None:
        calibrates = _half_of_nonmembers(arm)
    else:
        arm = _add_held_out(arm, calibration)
        calibrates = np.arange(len(arm.member)) >= count
    decisions = []
    for column in arm.columns:
        level = settings.false_discovery_rate
        decision = decide(arm, column, calibrates, ~calibrates, level=level)
        if decision is None:
            continue
        flagged = np.flatnonzero(decision.flagged)
        wrong, names = ~arm.member[flagged], arm.group[flagged].tolist()
        share = clustered_share(wrong, names, confidence=settings.confidence)
        rows, of_groups = decision.calibration
        decisions.append(
            FileDecision(
                *column,
                calibration_rows=rows,
                calibration_groups=of_groups,
                decided=int(decision.decided.sum()),
                smallest_p=decision.smallest_p,
                flagged=tuple(flagged.tolist()),
                nonmembers=None if labels is None else int(wrong.sum()),
                share=None if labels is None else share,
            )
        )
    return decisions


def _add_held_out(arm: LoadedArm, calibration: Calibration) -> LoadedArm:
    """Return an arm with held-out rows after its own; what did not score these has no score."""
    count = len(calibration.groups)
    held_out = file_arm(calibration.scores, count, None, None)
    scores = np.full((count, len(arm.columns)), np.nan)
    for column in arm.index.keys() & held_out.index.keys():
        scores[:, arm.index[column]] = held_out.scores[:, held_out.index[column]]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(arm, name), getattr(held_out, name)])
        for name in ("member", "test", "dataset", "copies", "variant")
    }
    group = np.concatenate([arm.group, np.array(calibration.groups, dtype=object)])
    return replace(arm, scores=np.vstack([arm.scores, scores]), group=group, **joined)


def _half_of_nonmembers(arm: LoadedArm) -> Mask:
    """Return which rows calibrate: half of the groups without a member, by a keyed draw."""
    mixed = set(arm.group[arm.member])
    clean = sorted({str(name) for name in arm.group[~arm.member]} - mixed)
    keys = keyed.item_keys([f"half {row}" for row in clean])
    words = keyed.words(0, keyed.Stream.BOOTSTRAP, keys)
    order = [name for _, name in sorted(zip(words.tolist(), clean, strict=True))]
    half = set(order[: len(order) // 2])
    return np.array([name in half for name in arm.group], dtype=np.bool_)
