"""`pac`: polarised distance of a text, calibrated by texts with swapped words (PAC).

Ye et al. 2024: −(PD(x) − mean_j PD(x̃_j)) over 5 texts x̃_j, each after max(1, floor(0.3 · words))
swaps of two words; the minus is theirs. The swaps are keyed by the text (`detect.views`): public
code uses one seed for all texts, so its scores depend on their order.
"""

from statistics import fmean

from detect.detector import Detector, one_score
from detect.detectors.pd import polarised_distance
from detect.evidence import ExampleEvidence
from detect.evidence.views import View
from detect.views import SWAPPED, TEXT

ONE_WORD = "fewer than two words, so none can be swapped"


def _score(example: ExampleEvidence) -> float | str:
    if len(example.text.split()) < 2:
        return ONE_WORD
    swapped = [example.statistics[name] for name in SWAPPED]
    for statistics in swapped:
        if not len(statistics):
            return f"text with swapped words: {statistics.reason}"
    others = [polarised_distance(statistics.log_probability) for statistics in swapped]
    return fmean(others) - polarised_distance(example.statistics[TEXT].log_probability)


DETECTOR = Detector(
    name="pac",
    title="PAC",
    summary="polarised distance less that of texts with swapped words, negative",
    source="Ye et al. 2024 (PAC)",
    needs=(View(TEXT), *(View(name) for name in SWAPPED)),
    assumption=(
        "swapped words make a seen text like an unseen one, and hardly change an unseen text"
    ),
    order=95,
    score=one_score(_score),
)
