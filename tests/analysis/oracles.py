"""AUC and TPR by definition, without weights, as oracles for other implementations."""

import numpy as np
import numpy.typing as npt


def auc(members: npt.ArrayLike, nonmembers: npt.ArrayLike) -> float:
    """Return P(member > non-member) + P(equal) / 2, over all pairs."""
    inside, outside = np.asarray(members)[:, None], np.asarray(nonmembers)[None, :]
    return float((inside > outside).mean() + (inside == outside).mean() / 2)


def tpr_at_fpr(members: npt.ArrayLike, nonmembers: npt.ArrayLike, rate: float) -> float:
    """Return the largest TPR over all thresholds whose FPR is at most `rate`."""
    inside, outside = np.asarray(members), np.asarray(nonmembers)
    return max(
        float((inside >= threshold).mean())
        for threshold in [*inside, *outside, np.inf]
        if (outside >= threshold).sum() <= rate * len(outside) + 1e-9
    )
