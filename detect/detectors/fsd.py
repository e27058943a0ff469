"""`fsd`: the change of a text's score after tuning the target on unseen texts.

Fine-tuned score deviation (Zhang et al. 2025): score = S_θ(x) − S_θ'(x), with θ' the target tuned
by low-rank adapters on held-out rows of all datasets (`detect.engine.tuning` has the settings), and
S a score that is larger for members. Tuning on unseen texts of the same kind raises other unseen
texts more than it raises members, so larger means member. It is `reference` with a tuned twin.

The paper's first score is the difference of perplexities (`score=perplexity`); `loss` ranks by that
of their logarithms. Its others are `lowercase`, `zlib` and `min_k`, and its adapters
`adapters=peft`. On sets with a shift in time, part of the authors' gain is that shift; here both
sides are drawn from one pool.
"""

import math
from collections.abc import Sequence
from typing import Literal

from detect.detector import Detector, Score, each_setting
from detect.detectors.loss import mean_log_probability
from detect.detectors.min_k import MinKParameters, lowest_means
from detect.detectors.zlib import zlib_ratio
from detect.evidence import ExampleEvidence
from detect.evidence.held_out import Tuned
from detect.evidence.needs import Need
from detect.evidence.views import View
from detect.settings import Adapters
from detect.token_statistics import TokenStatistics
from detect.views import LOWERCASE, TEXT
from inject.settings import Settings

Deviation = Literal["loss", "perplexity", "lowercase", "min_k", "zlib"]


class FsdParameters(Settings):
    """The score to compare before and after, and the tuning of the target."""

    score: Deviation = "loss"
    """Mean ℓ, −`perplexity`, `lowercase`, `min_k` with k = 0.2, or `zlib`."""
    adapters: Adapters = "all_linear"
    """`peft`, the paper's: PEFT's default layers, weight decay 0.0005; `all_linear`: all linear
    layers but the head, without decay."""


def _views(parameters: FsdParameters) -> tuple[str, ...]:
    return (TEXT, LOWERCASE) if parameters.score == "lowercase" else (TEXT,)


def _needs(parameters: FsdParameters) -> tuple[Need, ...]:
    tuned = [Tuned(view=view, adapters=parameters.adapters) for view in _views(parameters)]
    return (*map(View, _views(parameters)), *tuned)


def _value(kind: Deviation, statistics: Sequence[TokenStatistics], text: str) -> float:
    first = statistics[0]
    if kind == "min_k":
        return lowest_means(first.log_probability, [MinKParameters()])[0].value
    if kind == "zlib":
        return zlib_ratio(first, text)
    mean = mean_log_probability(first)
    if kind == "perplexity":
        # The exponential of a large loss overflows; a high limit preserves the order.
        return -math.exp(min(-mean, 700.0))
    if kind == "lowercase":
        return mean_log_probability(statistics[1]) / mean if mean else math.nan
    return mean


def _score(example: ExampleEvidence, setting: FsdParameters) -> Score:
    views = _views(setting)
    before = [example.statistics[view] for view in views]
    after = [example.tuned[Tuned(view=view, adapters=setting.adapters).name] for view in views]
    for statistics in (*before, *after):
        if not len(statistics):
            return Score(math.nan, f"before or after tuning: {statistics.reason}")
    values = [_value(setting.score, state, example.text) for state in (before, after)]
    if math.isnan(values[0] - values[1]):
        return Score(math.nan, "every token is certain (mean log-probability 0)")
    return Score(values[0] - values[1])


DETECTOR = Detector(
    name="fsd",
    title="FSD",
    summary="score less that under the target tuned on texts that it has not seen",
    source="Zhang et al. 2025 (fine-tuned score deviation)",
    needs=(View(TEXT),),
    further_needs=_needs,
    assumption=(
        "held-out rows are like the scored ones, and tuning on them moves unseen texts more "
        "than known ones"
    ),
    order=44,
    parameters=FsdParameters,
    grid=tuple(FsdParameters(score=kind) for kind in ("loss", "perplexity", "min_k", "zlib")),
    score=each_setting(_score),
)
