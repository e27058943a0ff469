"""The rows that all detectors are compared on, and those that some could not score.

Rule, by arm and dataset, over all reported settings (default and tuned): a row that one of
them cannot score leaves every comparison. A setting that fails on more than
`max_unscored` of the test rows is set apart instead, on its own rows, and named loudly,
so that one failing detector does not delete the data of the others.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from analysis.arm import Cohort, DetectorColumn, LoadedArm
from analysis.intervals.influence import Floats, Mask, positions
from analysis.settings import AnalysisSettings

UNLIKE = 0.01
"""A p-value below it means that scores are missing more often on one side."""


class MissingScores(NamedTuple):
    """The rows that one setting could not score in one dataset of one seed."""

    detector: str
    setting: str
    members: int
    members_missing: int
    nonmembers: int
    nonmembers_missing: int
    p_value: float
    """Of equal shares on both sides, two-sided."""
    lowest: float
    """AUC with missing members below all others and missing non-members above."""
    highest: float
    """AUC the other way round."""

    @property
    def unlike(self) -> bool:
        """Whether scores are missing more often on one side."""
        return self.p_value < UNLIKE

    def sentence(self) -> str:
        """A sentence on the rows without scores, and on the AUCs that are possible."""
        members = self.members_missing / max(self.members, 1)
        nonmembers = self.nonmembers_missing / max(self.nonmembers, 1)
        return (
            f"scores are missing of {members:.0%} of the members and {nonmembers:.0%} of the "
            f"non-members (p {self.p_value:.2g}): at the extremes the AUC is {self.lowest:.2f} or "
            f"{self.highest:.2f}"
        )


def missing_scores(
    detector: str, setting: str, scores: Floats, member: Mask
) -> MissingScores | None:
    """Return the missing scores by side; None if none is missing, or a side is empty.

    Args:
        detector, setting: whose scores.
        scores: of the rows compared, not finite if missing.
        member: which rows are members.
    """
    from scipy.stats import fisher_exact

    missing = ~np.isfinite(scores)
    inside, outside = int(member.sum()), int((~member).sum())
    if not missing.any() or not inside or not outside:
        return None
    lost, others_lost = int((missing & member).sum()), int((missing & ~member).sum())
    counts = [[lost, inside - lost], [others_lost, outside - others_lost]]
    p_value = float(fisher_exact(counts)[1])
    lowest, highest = (
        _auc(np.where(missing, np.where(member, end, -end), scores), member)
        for end in (-np.inf, np.inf)
    )
    missed = (inside, lost, outside, others_lost)
    return MissingScores(detector, setting, *missed, p_value, lowest, highest)


def _auc(scores: Floats, member: Mask) -> float:
    """Return the AUC, ties half; infinite scores are ordered like any other."""
    lower, upper = positions(np.sort(scores[~member]), scores[member])
    return float((lower + upper).sum() / (2 * member.sum() * (~member).sum()))


class Failure(NamedTuple):
    """The rows that a detector could not score, with the reason."""

    detector: str
    reason: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class UnscoredRows:
    """The rows that left the comparison in one dataset of one arm."""

    cohort: Cohort
    seed: int
    dataset: str
    rows: int
    """Test rows of the dataset."""
    left_out: int
    """Test rows that left every comparison."""
    reasons: tuple[Failure, ...]
    """The reasons for missing scores, most frequent first."""
    apart: tuple[tuple[DetectorColumn, int], ...]
    """Settings compared on their own rows, and how many test rows each could not score."""
    missing: tuple[MissingScores, ...] = ()
    """Of each setting that could not score some row: by side, with a test and both extremes."""


@dataclass(frozen=True, kw_only=True)
class ComparedRows:
    """The rows of one dataset of one arm that each column is measured on."""

    dataset: str
    common: Mask
    """Test rows all columns not set apart can score [n_examples]."""
    own: dict[DetectorColumn, Mask]
    """Rows of the columns that are set apart."""
    unscored: UnscoredRows

    def subset(self, rows: Mask) -> "ComparedRows":
        """Return the same with only some of the rows."""
        return replace(
            self,
            common=self.common & rows,
            own={column: own & rows for column, own in self.own.items()},
        )

    def rows(self, column: DetectorColumn) -> Mask:
        """Return the rows one column is measured on."""
        return self.own.get(column, self.common)


def compare_rows(
    arm: LoadedArm,
    columns: Sequence[DetectorColumn],
    dataset: str,
    *,
    cohort: Cohort,
    settings: AnalysisSettings,
) -> ComparedRows:
    """Apply the rule above to one dataset of one arm; `columns` are all reported settings.

    Those that the arm lacks are ignored.
    """
    columns = [column for column in columns if column in arm.index]
    in_dataset = arm.test & (arm.dataset == dataset)
    n_rows, common = int(in_dataset.sum()), in_dataset.copy()
    own: dict[DetectorColumn, Mask] = {}
    apart: list[tuple[DetectorColumn, int]] = []
    failures: set[tuple[int, str, str]] = set()
    for column in columns:
        without_score = in_dataset & ~np.isfinite(arm.scores[:, arm.index[column]])
        for row in np.flatnonzero(without_score).tolist():
            reason = arm.reasons.get((row, column), "score is not finite")
            failures.add((row, column.detector, reason))
        failed = int(without_score.sum())
        if failed > settings.max_unscored * n_rows:
            own[column] = in_dataset & ~without_score
            apart.append((column, failed))
        else:
            common &= ~without_score
    counted = Counter((detector, reason) for _, detector, reason in sorted(failures))
    missing = (
        missing_scores(*column, arm.scores[in_dataset, arm.index[column]], arm.member[in_dataset])
        for column in columns
    )
    unscored = UnscoredRows(
        cohort=cohort,
        seed=arm.arm.seed,
        dataset=dataset,
        rows=n_rows,
        left_out=n_rows - int(common.sum()),
        reasons=tuple(Failure(*key, n) for key, n in counted.most_common()),
        apart=tuple(apart),
        missing=tuple(pattern for pattern in missing if pattern is not None),
    )
    return ComparedRows(dataset=dataset, common=common, own=own, unscored=unscored)
