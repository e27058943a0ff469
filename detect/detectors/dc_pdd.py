"""`dc_pdd`: token probabilities calibrated by their frequency in a corpus (DC-PDD).

Zhang et al. 2024, "Pretraining Data Detection for Large Language Models", equations 5-8:
β = mean of min(−p(x_i)·log f(x_i), a) over the first scored occurrence of each token; larger =
member. With a = 0.01 most terms reach the cap a: a note reports their share. A parameter selects
the paper's ablations (section 5.2): without the cap, and with every occurrence of a token.
"""

import math
from typing import Any, Literal

import numpy as np

from detect.detector import Detector, Score, each_setting
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.frequency import Frequency
from detect.evidence.views import View
from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.keyed import F64
from inject.settings import PositiveFloat, Settings

Variant = Literal["sfo", "lup", "cld"]


class DcPddParameters(Settings):
    """The cap on each token's term, and the terms that count."""

    a: PositiveFloat = 0.01
    """Upper bound of −p·log f (equation 7)."""
    variant: Variant = "sfo"
    """`sfo`, DC-PDD itself: the capped terms of first occurrences; `lup`: those of all tokens;
    `cld`: the uncapped terms of all."""


GRID = tuple(DcPddParameters(a=a) for a in (0.001, 0.01, 0.1, 1.0, 10.0))


def terms(statistics: TokenStatistics, frequency: TokenFrequency, variant: Variant = "sfo") -> F64:
    """Return −p(x_i)·log f(x_i) of the tokens that count (equations 6, 8).

    These are the first scored occurrences of each token for `sfo`, else all.
    """
    counted = np.arange(len(statistics))
    if variant == "sfo":
        _, counted = np.unique(statistics.ids, return_index=True)
    probability = np.exp(statistics.log_probability[counted].astype(np.float64))
    return -probability * frequency.log_frequency(statistics.ids[counted])


def calibrated(values: F64, a: float) -> tuple[float, float]:
    """Return β and the share of the terms that reach the cap (equations 7, 8)."""
    return float(np.minimum(values, a).mean()), float((values >= a).mean())


def _score(example: ExampleEvidence, setting: DcPddParameters) -> Score:
    statistics, frequency = example.statistics[TEXT], example.frequency
    if frequency is None:
        return Score(math.nan, "no token frequencies")
    if int(statistics.ids.max()) >= len(frequency.counts):
        return Score(math.nan, "a token id beyond the frequency table's vocabulary")
    values = terms(statistics, frequency, setting.variant)
    if setting.variant == "cld":
        return Score(float(values.mean()))
    return Score(calibrated(values, setting.a)[0])


def _note(evidence: Evidence, setting: Any) -> str | None:
    if evidence.frequency is None or setting.variant == "cld":
        return None
    size = len(evidence.frequency.counts)
    shares = [
        calibrated(terms(statistics, evidence.frequency, setting.variant), setting.a)[1]
        for statistics in evidence.statistics[TEXT]
        if len(statistics) and int(statistics.ids.max()) < size
    ]
    if not shares:
        return None
    which = "" if setting.variant == "sfo" else f"{setting.variant}, "
    return (
        f"{which}a = {setting.a}: on average {np.mean(shares):.0%} of a text's terms reach the cap"
    )


DETECTOR = Detector(
    name="dc_pdd",
    title="DC-PDD",
    summary="token probabilities calibrated by corpus frequency, capped, first occurrences",
    source="Zhang et al. 2024 (DC-PDD), equations 5-8",
    needs=(View(TEXT), Frequency()),
    aliases=("dcpdd",),
    assumption=(
        "the reference corpus has the training data's token frequencies, and members have "
        "rarer tokens of higher probability than these explain"
    ),
    order=80,
    parameters=DcPddParameters,
    grid=GRID,
    score=each_setting(_score, _note),
)
