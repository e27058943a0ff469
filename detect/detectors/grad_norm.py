"""`grad_norm`: the negative norm of the gradient of the text's loss.

A model has little left to learn from what it was trained on, so members have *smaller* gradients
(Duan et al. 2024, MIMIR, appendix; Wang et al. 2024, Pandora: the three kinds of norm). Some public
code scores the norm itself, which ranks members last.
"""

import math
from collections.abc import Sequence
from typing import Literal

from detect.detector import Column, Detector, Score
from detect.evidence import Evidence
from detect.evidence.gradients import Gradients
from detect.text_measures import ORDERS, GradientNorms
from inject.settings import Settings


class GradNormParameters(Settings):
    """The gradient and its norm."""

    of: Literal["all", "tensors", "embeddings"] = "all"
    """`all`: one norm over all trained parameters; `tensors`: the mean norm of the trained tensors;
    `embeddings`: with respect to the input embeddings."""
    p: Literal["1", "2", "inf"] = "2"
    """Order of the norm; `all` allows only the 2-norm."""


GRID = (
    GradNormParameters(),
    *(GradNormParameters(of="tensors", p=p) for p in ORDERS),
    *(GradNormParameters(of="embeddings", p=p) for p in ORDERS),
)


def negative_norm(norms: GradientNorms, setting: GradNormParameters) -> Score:
    """Return the negative of a setting's norm."""
    place = ORDERS.index(setting.p)
    if norms.reason is not None or norms.whole is None:
        return Score(math.nan, norms.reason or "no gradient")
    if setting.of == "all":
        if setting.p != "2":
            return Score(math.nan, "over all parameters together, only the 2-norm is defined")
        return Score(-norms.whole)
    norm = norms.tensors if setting.of == "tensors" else norms.embeddings
    return Score(math.nan, "no gradient") if norm is None else Score(-norm[place])


def _score(evidence: Evidence, settings: Sequence[GradNormParameters]) -> list[Column]:
    if evidence.gradients is None:
        raise TypeError("grad_norm without gradients")
    return [
        Column([negative_norm(norms, setting) for norms in evidence.gradients])
        for setting in settings
    ]


DETECTOR = Detector(
    name="grad_norm",
    title="Gradient norm",
    summary="norm of the gradient of the text's loss, negative",
    source="Duan et al. 2024 (MIMIR); Wang et al. 2024 (Pandora)",
    needs=(Gradients(),),
    assumption="both sides have equally large gradients under a model that saw neither",
    aliases=("gradnorm", "gradient_norm"),
    order=110,
    parameters=GradNormParameters,
    grid=GRID,
    score=_score,
)
