"""Rows of a file that detectors flag as members, with a bound on how many of them are wrong.

Held-out rows calibrate, and every row is decided. Without them, where labels are known, a random
half of the groups of non-members calibrates and all other rows are decided: that shows how such
decisions fare. Each setting by itself; which half it is depends on the groups alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.auc_table import group_names, scores_by_setting
from analysis.decisions.conformal import benjamini_hochberg, conformal_p_values
from analysis.decisions.flagged import clustered_share
from analysis.intervals.estimate import Estimate
from analysis.settings import AnalysisSettings
from inject import keyed


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
    if calibration is None:
        calibrates = _half_of_nonmembers(labels or [], names)
        held_out = {key: values[calibrates] for key, values in columns.items()}
        apart = names[calibrates]
    else:
        calibrates = np.zeros(count, np.bool_)
        held_out = _columns(calibration.scores)
        apart = np.array(calibration.groups, dtype=object)
    found = []
    for key, values in columns.items():
        by = held_out.get(key)
        if by is None or np.isnan(by).all():
            continue
        there = ~np.isnan(by)
        p = conformal_p_values(values.tolist(), by[there].tolist(), apart[there].tolist())
        p[calibrates] = np.nan
        flagged = benjamini_hochberg(p.tolist(), how.false_discovery_rate)
        wrong = None if labels is None else ~np.asarray(labels, np.bool_)[flagged]
        own_groups = len(set(apart[there]))
        found.append(
            FileDecision(
                *key,
                calibration_rows=int(there.sum()),
                calibration_groups=own_groups,
                decided=int((~np.isnan(p)).sum()),
                smallest_p=1 / (1 + own_groups),
                flagged=tuple(np.flatnonzero(flagged).tolist()),
                nonmembers=None if wrong is None else int(wrong.sum()),
                share=None
                if wrong is None
                else clustered_share(wrong, names[flagged].tolist(), confidence=how.confidence),
            )
        )
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
