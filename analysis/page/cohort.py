"""The scores of one cohort, placed and standardised within each dataset and seed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.arm import Cohort, Column, LoadedArm
from analysis.auc_cells import Counts
from analysis.compared_rows import compare_rows
from analysis.metrics import Floats
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings


class CohortRows(NamedTuple):
    """Test rows of one column over all seeds and datasets of a cohort."""

    exceeded: Floats
    """Per member: the share of its own dataset's non-members that score as high or higher."""
    copies: Counts
    """Per member: realised copies."""
    members: Floats
    """Per member: score in robust standard deviations of its dataset's non-members from
    their median (median absolute deviation × 1.4826)."""
    nonmembers: Floats
    """Per non-member, on the same scale."""


class CohortData(NamedTuple):
    """A cohort's arms in memory with the columns that are reported."""

    cohort: Cohort
    loaded: Sequence[LoadedArm]
    columns: dict[Column, tuple[str, ...]]
    choices: Sequence[Choice]

    def column(self, detector: str, selection: str) -> Column:
        """Return the column of a detector under a selection, else under its default."""
        mine = {at: column for column, kinds in self.columns.items()
                if column.detector == detector for at in kinds}  # fmt: skip
        return mine.get(selection) or mine["default"]

    def rows(self, detector: str, selection: str, settings: AnalysisSettings) -> CohortRows:
        """Return a detector's scores, placed and standardised within each dataset and seed."""
        parts = []
        for arm in self.loaded:
            column = self.column(detector, selection)
            for dataset in dict.fromkeys(arm.dataset[arm.test]):
                rows = compare_rows(
                    arm, list(self.columns), dataset, cohort=self.cohort, settings=settings
                ).rows(column)
                scores = arm.scores[:, arm.index[column]]
                inside, outside = scores[rows & arm.member], np.sort(scores[rows & ~arm.member])
                if not len(inside) or not len(outside):
                    continue
                higher = len(outside) - np.searchsorted(outside, inside, side="left")
                centre = np.median(outside)
                scale = 1.4826 * np.median(np.abs(outside - centre)) or 1.0
                parts.append((higher / len(outside), arm.copies[rows & arm.member],
                              (inside - centre) / scale, (outside - centre) / scale))  # fmt: skip
        if not parts:
            empty = np.zeros(0)
            return CohortRows(empty, empty.astype(np.int64), empty, empty)
        return CohortRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
