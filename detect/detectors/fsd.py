"""`fsd`: what tuning the target on texts that it has not seen does to the text's score.

Fine-tuned score deviation (Zhang et al. 2025): score = S_θ(x) − S_θ'(x), with θ' the target tuned
by low-rank adapters on held-out rows of all datasets (`detect.engine.tuning` has the settings), and
S any score of the token table, larger for members. Tuning on unseen texts of the same kind raises
other unseen texts more than it raises members, so larger means member. It is `reference` with a
tuned twin. Part of the gain that the authors report on sets with a shift in time is that shift;
here both sides are drawn from one pool.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from detect.detector import Detector, Score, each_example, whole
from detect.detectors.loss import mean_log_probability
from detect.detectors.zlib import zlib_ratio
from detect.evidence import ExampleEvidence
from detect.needs import Tuned, View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings

_K = Fraction(1, 5)
Deviation = Literal["loss", "min_k", "zlib"]


class FsdParameters(Settings):
    """Which score is compared before and after."""

    score: Deviation = "loss"
    """Mean ℓ, `min_k` with k = 0.2, or `zlib`."""


def _value(kind: Deviation, statistics: TokenStatistics, text: str) -> float:
    if kind == "min_k":
        count = max(1, whole(len(statistics), _K))
        lowest = np.sort(statistics.log_probability)[:count]
        return float(np.mean(lowest, dtype=np.float64))
    return zlib_ratio(statistics, text) if kind == "zlib" else mean_log_probability(statistics)


def _score(example: ExampleEvidence, settings: Sequence[FsdParameters]) -> list[Score]:
    before, after = example.statistics[TEXT], example.tuned
    if after is None or not len(after):
        reason = f"tuned model: {'no statistics' if after is None else after.reason}"
        return [Score(math.nan, reason)] * len(settings)
    return [
        Score(
            _value(setting.score, before, example.text) - _value(setting.score, after, example.text)
        )
        for setting in settings
    ]


DETECTOR = Detector(
    name="fsd",
    summary="score less that under the target tuned on texts that it has not seen",
    source="Zhang et al. 2025 (fine-tuned score deviation)",
    needs=(View(TEXT), Tuned()),
    assumption=(
        "the held-out rows are like the scored ones, and tuning on them moves unseen texts more "
        "than texts that the model knows"
    ),
    order=44,
    parameters=FsdParameters,
    grid=tuple(FsdParameters(score=kind) for kind in ("loss", "min_k", "zlib")),
    score=each_example(_score),
)
