"""Metrics of one set of scores, exact and without intervals: rank AUC, TPR at FPR, ROC.

Ties count as half in the AUC. Thresholds lie only between distinct scores, so tied rows are
accepted or rejected together. Higher scores mean 'more likely a member'. All cost one sort.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SUPPORT = 10
"""False positives that an operating point must be able to rest on."""


class Roc(NamedTuple):
    """A ROC curve: one point for each distinct score, from (0, 0) to (1, 1)."""

    false_positive_rate: Floats
    true_positive_rate: Floats


def auc(members: npt.ArrayLike, nonmembers: npt.ArrayLike) -> float:
    """Return P(member > non-member) + P(equal) / 2; NaN where a side is empty.

    Args:
        members: scores, shape [n_members], no NaN.
        nonmembers: scores, shape [n_nonmembers], no NaN.
    """
    inside = np.asarray(members, dtype=np.float64)
    outside = np.sort(np.asarray(nonmembers, dtype=np.float64))
    if not len(inside) or not len(outside):
        return float("nan")
    below = np.searchsorted(outside, inside, side="left")
    at_most = np.searchsorted(outside, inside, side="right")
    return float((below + at_most).sum() / (2 * len(inside) * len(outside)))


def tpr_at_fpr(members: npt.ArrayLike, nonmembers: npt.ArrayLike, rate: float) -> float:
    """Return the largest TPR whose FPR is at most `rate`; NaN where a side is empty.

    It is not held back here where n is small: see `supported`.
    """
    inside = np.asarray(members, dtype=np.float64)
    outside = np.sort(np.asarray(nonmembers, dtype=np.float64))
    if not len(inside) or not len(outside):
        return float("nan")
    accepted = len(outside) - np.searchsorted(outside, inside, side="left")
    return float((accepted <= allowed_false_positives(rate, len(outside))).mean())


def allowed_false_positives(rate: float, nonmembers: float) -> int:
    """Return the largest whole number of false positives with FPR <= rate.

    0.29 * 100 is 28.999… in floats and means 29, hence the small allowance.
    """
    return int(np.floor(rate * nonmembers + 1e-9))


def supports_rate(rate: float, nonmembers: int) -> bool:
    """Say whether so many non-members support a TPR at this FPR: at least 10 / rate."""
    return nonmembers * rate >= SUPPORT - 1e-9


def tpr_name(rate: float) -> str:
    """Return the metric's name, such as `tpr@0.001`."""
    return f"tpr@{rate:g}"


def roc(members: npt.ArrayLike, nonmembers: npt.ArrayLike) -> Roc:
    """Return the ROC curve; raises nothing, an empty side gives NaN rates."""
    inside = np.asarray(members, dtype=np.float64)
    outside = np.asarray(nonmembers, dtype=np.float64)
    thresholds = np.unique(np.concatenate([inside, outside]))[::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        true = (len(inside) - np.searchsorted(np.sort(inside), thresholds)) / np.float64(
            len(inside)
        )
        false = (len(outside) - np.searchsorted(np.sort(outside), thresholds)) / np.float64(
            len(outside)
        )
    return Roc(np.concatenate([[0.0], false]), np.concatenate([[0.0], true]))
