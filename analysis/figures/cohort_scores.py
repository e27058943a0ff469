"""What the figures of one cohort draw from: members' places and scores on one scale."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.arm import Arm, Cohort, Column, LoadedArm, cohorts, load_arm
from analysis.auc_cells import Counts
from analysis.compared_rows import compare_rows
from analysis.metrics import Floats
from analysis.results import Analysis
from analysis.selection.tuning import reported_columns
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

    def column(self, detector: str, selection: str) -> Column:
        """Return the column of a detector under a selection."""
        return next(
            column
            for column, selections in self.columns.items()
            if column.detector == detector and selection in selections
        )


def load_cohort(arms: Sequence[Arm], analysis: Analysis, cohort: Cohort) -> CohortData:
    """Read the arms of one cohort with the settings the analysis chose."""
    loaded = [load_arm(arm) for arm in cohorts(arms)[cohort]]
    choices = next(found.choices for found in analysis.choices if found.cohort == cohort)
    return CohortData(cohort, loaded, reported_columns(loaded, choices))


def cohort_rows(data: CohortData, column: Column, settings: AnalysisSettings) -> CohortRows:
    """Place and standardise one column's scores, within each dataset and seed."""
    exceeded, copies, inside_z, outside_z = [], [], [], []
    for arm in data.loaded:
        for dataset in dict.fromkeys(arm.dataset[arm.test]):
            rows = compare_rows(
                arm, list(data.columns), dataset, cohort=data.cohort, settings=settings
            ).rows(column)
            scores = arm.scores[:, arm.index[column]]
            inside, outside = scores[rows & arm.member], np.sort(scores[rows & ~arm.member])
            if not len(inside) or not len(outside):
                continue
            higher = len(outside) - np.searchsorted(outside, inside, side="left")
            exceeded.append(higher / len(outside))
            copies.append(arm.copies[rows & arm.member])
            centre = np.median(outside)
            scale = 1.4826 * np.median(np.abs(outside - centre)) or 1.0
            inside_z.append((inside - centre) / scale)
            outside_z.append((outside - centre) / scale)
    if not exceeded:
        empty = np.zeros(0)
        return CohortRows(empty, empty.astype(np.int64), empty, empty)
    return CohortRows(
        np.concatenate(exceeded),
        np.concatenate(copies),
        np.concatenate(inside_z),
        np.concatenate(outside_z),
    )
