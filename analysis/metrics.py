"""What the metrics are called, and how many non-members an operating point needs.

The metrics are computed with their intervals in `analysis.intervals`.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
TUNE_AUC = "tune_auc"
"""AUC on the `tune` rows, by which the best detector is chosen; reported is the one on `test`."""
SUPPORT = 10
"""False positives that an operating point must be able to rest on."""


def supports_rate(rate: float, nonmembers: int) -> bool:
    """Say whether so many non-members support a TPR at this FPR: at least 10 / rate."""
    return nonmembers * rate >= SUPPORT - 1e-9


def tpr_name(rate: float) -> str:
    """Return the metric's name, such as `tpr@0.001`."""
    return f"tpr@{rate:g}"
