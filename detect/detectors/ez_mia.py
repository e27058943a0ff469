"""`ez_mia`: at the target's errors, does it still give more probability than the reference model?

EZ-MIA (arXiv 2601.12104, appendix E): E are the tokens that are not the target's most likely one,
Δ_i = ℓ_i − ℓ_ref,i, P = Σ_E max(Δ_i, 0) and G = Σ_E max(−Δ_i, 0). The authors score P/G; ours is
P/(P + G), which ranks alike and is finite. If x_i ties for the largest probability it is not an
error. Without an error, or if Δ is 0 at all of them, the ratio is undefined: the paper classifies
such a text as a member (appendices E.5 and E.6), the published code as a non-member.
"""

import math
from typing import Literal

import numpy as np

from detect.access import Access
from detect.detector import Detector, Score
from detect.detectors.wbc import Floats, log_ratios, with_same_tokens
from detect.evidence.views import Reference, View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings


class EzMiaParameters(Settings):
    """Differences between the paper and its code."""

    empty: Literal["member", "zero", "nan"] = "member"
    """A text without errors, or with none at which the target lost probability: `member`: 1, as in
    the paper; `zero`: 0, as in its code, also for a single error; `nan`: no score if P and G are
    0."""
    skip_first: bool = False
    """Exclude the first scored token, as the code does."""


def error_share(differences: Floats, setting: EzMiaParameters) -> Score:
    """Return P/(P + G) of the differences at the errors."""
    gained = float(np.maximum(differences, 0).sum())
    lost = float(np.maximum(-differences, 0).sum())
    if setting.empty == "zero" and (len(differences) < 2 or lost == 0):
        return Score(0.0)
    if gained + lost > 0:
        return Score(gained / (gained + lost))
    if setting.empty == "member":
        return Score(1.0)
    if len(differences):
        return Score(math.nan, "the two models agree at every error")
    return Score(math.nan, "the target predicts every token correctly")


def _score(target: TokenStatistics, reference: TokenStatistics, setting: EzMiaParameters) -> Score:
    differences = log_ratios(target, reference)
    wrong = target.rank > 1
    first = 1 if setting.skip_first else 0
    return error_share(differences[first:][wrong[first:]], setting)


DETECTOR = Detector(
    name="ez_mia",
    title="EZ-MIA",
    summary="at the target's errors: probability gained over a reference model, of all that moved",
    source="arXiv 2601.12104 (EZ-MIA), appendix E",
    needs=(View(TEXT), Reference()),
    access=Access.RANKS,
    assumption="the reference model is the target without the members, with the same tokenizer",
    aliases=("ez", "ezmia"),
    order=44,
    parameters=EzMiaParameters,
    score=with_same_tokens(_score),
)
