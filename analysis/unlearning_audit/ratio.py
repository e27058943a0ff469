"""The ratio rule of Shi et al. 2024, section 7.2.1: is a text as likely as before unlearning?

    r = score(unlearned) / score(original)

Both scores are means of log-probabilities, so they are negative, and a model that forgot a text
has a score further below zero: r is large. A text is *suspicious* where 1/1.15 < r < 1.15. A score
that is zero or positive is no mean of log-probabilities of which a ratio says anything; there is no
ratio then, with a reason.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Band(NamedTuple):
    """The ratios that are suspicious; both ends are outside."""

    low: float = 1 / 1.15
    high: float = 1.15

    def holds(self, ratios: Floats) -> Mask:
        """Return which ratios lie inside; NaN does not."""
        with np.errstate(invalid="ignore"):
            return (ratios > self.low) & (ratios < self.high)


class Ratios(NamedTuple):
    """One ratio a text."""

    values: Floats
    """NaN where there is none."""
    reasons: list[str | None]
    """Why there is none."""


def score_ratios(
    original: Sequence[float] | Floats, other: Sequence[float] | Floats, *, name: str = "unlearned"
) -> Ratios:
    """Return score(other) / score(original) of each text.

    Args:
        original: of each text, mean log-probabilities.
        other: likewise, of the model that is held against it.
        name: of that model, for the reasons.
    """
    values, reasons = [], []
    for first, second in zip(original, other, strict=True):
        reason = _reason("original", first) or _reason(name, second)
        values.append(math.nan if reason else second / first)
        reasons.append(reason)
    return Ratios(np.array(values, dtype=np.float64), reasons)


def _reason(model: str, score: float) -> str | None:
    if math.isnan(score):
        return f"no score of the {model} model"
    if score >= 0:
        how = "zero" if score == 0 else f"positive ({score:.3g})"
        return f"the score of the {model} model is {how}: a ratio is of negative scores"
    if math.isinf(score):
        return f"the score of the {model} model is not finite"
    return None
