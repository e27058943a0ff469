"""Decisions with a bound on their errors: conformal p-values of scores, and Benjamini-Hochberg.

Held-out rows that the model has not seen calibrate a detector: the p-value of a text is the share
of them, the text itself counted, that score as high. Where held-out rows and scored non-members are
exchangeable, which the draw of held-out rows provides (`inject.examples.pool`), a p-value of a
non-member is at most t with probability at most t, whatever the detector and its distribution
(Vovk et al. 2005). Benjamini and Hochberg (1995) then pick texts so that the expected share of
non-members among those picked is at most the level times the share of non-members: conformal
p-values from one calibration set depend on one another in the way that the rule allows (Bates et
al. 2023). No p-value is below 1 / (held-out rows + 1), so a low level needs many held-out rows; of
rows that share passages, that many groups.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from inject.errors import InputError

Floats = npt.NDArray[np.float64]


def conformal_p_values(
    scores: Sequence[float], held_out: Sequence[float], groups: Sequence[str] | None = None
) -> Floats:
    """Return the p-value of each score: (1 + held-out scores as high) / (1 + held-out scores).

    Where held-out texts share passages, a group counts as one text: with the share of its texts
    that score as high (Lee, Barber and Willett 2024, hierarchical conformal prediction). Counted
    each, they would make p-values too small.

    Args:
        scores: of texts, larger for members; NaN where there is none, which stays NaN.
        held_out: of texts that the model has not seen; NaN ones, which say nothing, are left out.
        groups: of the held-out texts; None where each is a group of its own.

    Raises:
        InputError: no held-out score is left.
    """
    calibration = np.asarray(held_out, dtype=np.float64)
    there = ~np.isnan(calibration)
    names = np.arange(len(calibration)) if groups is None else np.asarray(groups, dtype=str)
    found, of, sizes = np.unique(names[there], return_inverse=True, return_counts=True)
    if not len(found):
        raise InputError("no held-out row has a score to calibrate with")
    order = np.argsort(calibration[there], kind="stable")
    ordered = calibration[there][order]
    # The weight of all that is at least as high as each place; nothing is as high as the end.
    weight = np.append(np.cumsum((1 / sizes)[of][order][::-1])[::-1], 0.0)
    values = np.asarray(scores, dtype=np.float64)
    # Thirds that sum to 1 but for the last bit are 1.
    as_high = np.round(weight[np.searchsorted(ordered, values, side="left")], 9)
    return np.where(np.isnan(values), np.nan, (1 + as_high) / (1 + len(found)))


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
    from scipy.stats import false_discovery_control

    values = np.asarray(p_values, dtype=np.float64)
    there = np.flatnonzero(~np.isnan(values))
    picked = np.zeros(len(values), dtype=np.bool_)
    if len(there):
        # A p-value that is level · rank / number but for the last bit is picked.
        picked[there] = false_discovery_control(values[there]) <= level * (1 + 1e-12)
    return picked
