"""What the metrics are called, and how many non-members an operating point needs.

The metrics are computed with their intervals in `analysis.intervals`; rates of decisions
are here.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SUPPORT = 10
"""False positives that an operating point must be able to rest on."""


def supports_rate(rate: float, nonmembers: int) -> bool:
    """Say whether so many non-members support a TPR at this FPR: at least 10 / rate."""
    return nonmembers * rate >= SUPPORT - 1e-9


def tpr_name(rate: float) -> str:
    """Return the metric's name, such as `tpr@0.001`."""
    return f"tpr@{rate:g}"


class DecisionRates(NamedTuple):
    """How good yes-or-no decisions are."""

    precision: float
    """Share of members among the texts that were called members; NaN where none was."""
    recall: float
    """Share of the members that were called members; NaN where there are none."""
    f_beta: float
    """(1 + β²) · precision · recall / (β² · precision + recall); 0 where nothing was found."""


def decision_rates(
    members: Sequence[bool], decisions: Sequence[bool] | npt.NDArray[np.bool_], *, beta: float = 0.1
) -> DecisionRates:
    """Return precision, recall and F-beta; a β of 0.1 weighs precision a hundred times as much."""
    truth, called = np.asarray(members, np.bool_), np.asarray(decisions, np.bool_)
    hits = int((truth & called).sum())
    precision = hits / int(called.sum()) if called.any() else math.nan
    recall = hits / int(truth.sum()) if truth.any() else math.nan
    if not hits:
        return DecisionRates(precision, recall, 0.0 if truth.any() else math.nan)
    both = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return DecisionRates(precision, recall, both)
