"""Decisions with a bound on their errors: conformal p-values of scores, and Benjamini-Hochberg.

Held-out rows that the model has not seen calibrate a detector: the p-value of a text is the share
of them, the text itself counted, that score as high. Where held-out rows and scored non-members are
exchangeable, which the draw of held-out rows provides (`inject.examples.held_out`), a p-value of a
non-member is at most t with probability at most t, whatever the detector and its distribution
(Vovk et al. 2005). Benjamini and Hochberg (1995) then pick texts so that the expected share of
non-members among those picked is at most the level times the share of non-members: conformal
p-values from one calibration set depend on one another in the way that the rule allows (Bates et
al. 2023). No p-value is below 1 / (held-out rows + 1), so a low level needs many held-out rows.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from inject.errors import InputError

Floats = npt.NDArray[np.float64]


def conformal_p_values(scores: Sequence[float], held_out: Sequence[float]) -> Floats:
    """Return the p-value of each score: (1 + held-out scores as high) / (1 + held-out scores).

    Args:
        scores: of texts, larger for members; NaN where there is none, which stays NaN.
        held_out: of texts that the model has not seen; NaN ones, which say nothing, are left out.

    Raises:
        InputError: no held-out score is left.
    """
    calibration = np.asarray(held_out, dtype=np.float64)
    calibration = np.sort(calibration[~np.isnan(calibration)])
    if not len(calibration):
        raise InputError("no held-out row has a score to calibrate with")
    values = np.asarray(scores, dtype=np.float64)
    as_high = len(calibration) - np.searchsorted(calibration, values, side="left")
    return np.where(np.isnan(values), np.nan, (1 + as_high) / (1 + len(calibration)))


def benjamini_hochberg(p_values: Sequence[float], level: float) -> npt.NDArray[np.bool_]:
    """Return which hypotheses "this text is no member" are rejected at a false-discovery level.

    Args:
        p_values: of the texts; a text without one (NaN) is never picked and does not count.
        level: the expected share of wrong picks that is allowed.

    Raises:
        InputError: a level outside 0 to 1.
    """
    if not 0 < level < 1:
        raise InputError(f"a false-discovery level of {level:g}", allowed="above 0 and below 1")
    values = np.asarray(p_values, dtype=np.float64)
    there = np.flatnonzero(~np.isnan(values))
    ordered = np.sort(values[there])
    limits = level * np.arange(1, len(ordered) + 1) / max(1, len(ordered))
    below = np.flatnonzero(ordered <= limits)
    picked = np.zeros(len(values), dtype=np.bool_)
    if len(below):
        picked[there] = values[there] <= ordered[below[-1]]
    return picked
