"""`loss`: the mean log-probability; the same ranking as negative perplexity (Yeom 2018)."""

import numpy as np

from detect.detector import Detector, one_score
from detect.evidence import ExampleEvidence
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT


def mean_log_probability(statistics: TokenStatistics) -> float:
    """Return mean ℓ over the scored tokens, in nats; requires at least one."""
    return float(np.mean(statistics.log_probability, dtype=np.float64))


def _score(example: ExampleEvidence) -> float:
    return mean_log_probability(example.statistics[TEXT])


DETECTOR = Detector(
    name="loss",
    title="Loss",
    summary="mean log-probability (negative loss; perplexity ranks alike)",
    source="Yeom et al. 2018",
    needs=(View(TEXT),),
    aliases=("ppl", "perplexity"),
    assumption="both sides are equally hard to predict for a model that saw neither",
    order=10,
    score=one_score(_score),
)
