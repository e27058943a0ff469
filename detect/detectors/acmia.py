"""`acmia`: how does a token's probability respond to a change of temperature?

ACMIA (arXiv 2505.03392), over F, the first scored occurrence of each token. At the temperature of
the model itself, β = 1, two of its forms are functions of the plain token statistics: `norm`,
NormAC = mean_F((ℓ − μ)/σ), which is Min-K++ with k = 1 over F, and `derivative`, mean_F(ℓ − μ),
the limit of the authors' differences (DerivAC), by log β. At another β, with log p^(β) the
logarithm of softmax(β · logits), the same two are computed for p^(β), and `contrast` is AC:
mean_F(ℓ − log p^(β)) for β < 1, and minus that for β > 1. Such a β must be among those of
`detect.inverse_temperatures`. σ² is at least 1e-6.

The authors select the best of 51 β on the rows of the evaluation itself; here selection uses only
the `tune` split.
"""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from detect.access import Access
from detect.detector import OPTION, Detector, Score, each_setting
from detect.detectors.min_k import LEAST_VARIANCE
from detect.evidence import ExampleEvidence
from detect.evidence.views import InverseTemperature, View
from detect.token_statistics import TemperedStatistics, TokenStatistics
from detect.views import TEXT
from inject.settings import Settings


class AcmiaParameters(Settings):
    """The form and the temperature."""

    beta: Annotated[float, Field(gt=0, json_schema_extra=OPTION)] = 1.0
    """Inverse temperature β."""
    form: Literal["norm", "derivative", "contrast"] = "norm"
    """`norm`: NormAC; `derivative`: DerivAC in the limit; `contrast`: AC, for β other than 1."""

    @field_validator("form")
    @classmethod
    def _contrast_of_two(cls, form: str, info: ValidationInfo) -> str:
        if form == "contrast" and info.data.get("beta") == 1:
            raise ValueError("the contrast of β = 1 with itself is 0 for every text: give a beta")
        return form


GRID = (AcmiaParameters(), AcmiaParameters(form="derivative"))


def first_occurrences(statistics: TokenStatistics) -> np.ndarray:
    """Return the positions at which a token is scored for the first time, in order."""
    return np.sort(np.unique(statistics.ids, return_index=True)[1])


def _score(example: ExampleEvidence, setting: AcmiaParameters) -> Score:
    statistics, beta = example.statistics[TEXT], setting.beta
    first = first_occurrences(statistics)
    if beta != 1 and beta not in statistics.tempered:
        return Score(math.nan, f"no statistics at β = {beta}: see detect.inverse_temperatures")
    tempered: TokenStatistics | TemperedStatistics
    tempered = statistics if beta == 1 else statistics.tempered[beta]
    log_probability = tempered.log_probability[first].astype(np.float64)
    if setting.form == "contrast":
        difference = statistics.log_probability[first].astype(np.float64) - log_probability
        return Score(float(difference.mean()) * (1 if beta < 1 else -1))
    centred = log_probability - tempered.mean_log_prob[first]
    if setting.form == "norm":
        variance = np.maximum(tempered.std_log_prob[first].astype(np.float64) ** 2, LEAST_VARIANCE)
        centred /= np.sqrt(variance)
    return Score(float(centred.mean()))


def _temperature(setting: AcmiaParameters) -> tuple[InverseTemperature, ...]:
    return () if setting.beta == 1 else (InverseTemperature(setting.beta),)


DETECTOR = Detector(
    name="acmia",
    title="ACMIA",
    summary="how a token's probability answers to temperature, over first occurrences",
    source="arXiv 2505.03392 (ACMIA)",
    needs=(View(TEXT),),
    further_needs=_temperature,
    access=Access.DISTRIBUTION,
    assumption=(
        "a seen token is likelier than the model's own distribution suggests, and less "
        "sensitive to the temperature"
    ),
    order=64,
    parameters=AcmiaParameters,
    grid=GRID,
    score=each_setting(_score),
)
