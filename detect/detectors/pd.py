"""`pd`: the negative polarised distance of a text's log-probabilities (PD).

Ye et al. 2024 (PAC): PD = mean of the highest 5 % of ℓ − mean of the lowest 30 %, at least one
token each. Members are far from the extremes, so PD is small for them.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from detect.detector import Detector, exact_floor, one_score
from detect.evidence import ExampleEvidence
from detect.evidence.views import View
from detect.views import TEXT

HIGHEST, LOWEST = Fraction(5, 100), Fraction(30, 100)


def polarised_distance(log_probability: npt.NDArray[np.floating]) -> float:
    """Return PD of the log-probabilities of one text, at least one token."""
    ordered = np.sort(log_probability).astype(np.float64)
    low = max(1, exact_floor(len(ordered), LOWEST))
    high = max(1, exact_floor(len(ordered), HIGHEST))
    return float(ordered[-high:].mean() - ordered[:low].mean())


def _score(example: ExampleEvidence) -> float:
    return -polarised_distance(example.statistics[TEXT].log_probability)


DETECTOR = Detector(
    name="pd",
    title="Polarised distance",
    summary="distance between the likeliest and the least likely tokens, negative",
    source="Ye et al. 2024 (PAC), polarised distance",
    needs=(View(TEXT),),
    assumption="seen texts have fewer tokens of extreme probability than unseen ones",
    order=90,
    score=one_score(_score),
)
