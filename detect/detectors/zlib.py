"""`zlib`: the mean log-probability over the text's compressed size (Carlini et al. 2021)."""

import zlib

from detect.detector import Detector, one_score
from detect.detectors.loss import mean_log_probability
from detect.evidence import ExampleEvidence
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT

_LEVEL = 6


def zlib_ratio(statistics: TokenStatistics, text: str) -> float:
    """Return mean ℓ / bytes of the UTF-8 text compressed at level 6."""
    return mean_log_probability(statistics) / len(zlib.compress(text.encode(), _LEVEL))


def _score(example: ExampleEvidence) -> float:
    return zlib_ratio(example.statistics[TEXT], example.text)


DETECTOR = Detector(
    name="zlib",
    title="Zlib",
    summary="mean log-probability over the size of the text compressed by zlib",
    source="Carlini et al. 2021",
    needs=(View(TEXT),),
    assumption="the compressed size measures how hard an unseen text is for a model",
    order=20,
    libraries=("zlib",),
    score=one_score(_score),
)
