"""The metrics' names, and the non-members that an operating point requires.

The metrics are computed with their intervals in `analysis.intervals`.
"""

AUC = "auc"
TREND = "copies_trend"
"""Somers' D of score given realised copies among members: the trend test of a report."""
TUNE_AUC = "tune_auc"
"""AUC on the `tune` rows, by which the best detector is chosen; reported is the one on `test`."""
POOLED = "all"
SUPPORT = 10
"""False positives that an operating point requires."""


def supports_rate(rate: float, nonmembers: int) -> bool:
    """Return whether this many non-members support a TPR at this FPR: at least 10 / rate."""
    return nonmembers * rate >= SUPPORT - 1e-9


def tpr_name(rate: float) -> str:
    """Return the metric's name, such as `tpr@0.001`."""
    return f"tpr@{rate:g}"
