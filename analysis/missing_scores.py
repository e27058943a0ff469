"""Scores that are missing more often on one side than on the other, and what they could hide.

A detector that cannot score short texts leaves out other texts of members than of non-members where
the sides differ in length. The shares are tested (Fisher 1935), and the AUC is given at both
extremes: all missing scores at the end that helps the detector most, and at the other.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.metrics import Floats

UNLIKE = 0.01
"""A p-value below it says that scores are missing more often on one side."""


class MissingScores(NamedTuple):
    """What one setting could not score in one dataset of one seed."""

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
        """Say who lacks scores, and what the AUC could be."""
        members = self.members_missing / max(self.members, 1)
        nonmembers = self.nonmembers_missing / max(self.nonmembers, 1)
        return (
            f"scores are missing of {members:.0%} of the members and {nonmembers:.0%} of the "
            f"non-members (p {self.p_value:.2g}): at the extremes the AUC is {self.lowest:.2f} or "
            f"{self.highest:.2f}"
        )


def missing_scores(
    detector: str, setting: str, scores: Floats, member: npt.NDArray[np.bool_]
) -> MissingScores | None:
    """Return what is missing by side; None where nothing is, or a side is empty.

    Args:
        detector, setting: whose scores.
        scores: of the rows compared, not finite where missing.
        member: which rows are members.
    """
    from scipy.stats import fisher_exact

    gone = ~np.isfinite(scores)
    inside, outside = int(member.sum()), int((~member).sum())
    if not gone.any() or not inside or not outside:
        return None
    lost, others_lost = int((gone & member).sum()), int((gone & ~member).sum())
    counts = [[lost, inside - lost], [others_lost, outside - others_lost]]
    return MissingScores(
        detector,
        setting,
        inside,
        lost,
        outside,
        others_lost,
        float(fisher_exact(counts)[1]),
        _auc(np.where(gone, np.where(member, -np.inf, np.inf), scores), member),
        _auc(np.where(gone, np.where(member, np.inf, -np.inf), scores), member),
    )


def _auc(scores: Floats, member: npt.NDArray[np.bool_]) -> float:
    """Return the AUC, ties half; infinite scores are ordered like any other."""
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    inside = int(member.sum())
    outside = len(scores) - inside
    return float((ranks[member].sum() - inside * (inside + 1) / 2) / (inside * outside))
