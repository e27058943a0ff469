"""`min_k`: the mean of the k·N smallest log-probabilities (Shi et al. 2024, equation 1).

With a `window` of w tokens the log-probabilities are first averaged over a moving window (Win-k,
arXiv 2508.01268; the authors of Gap-K%, arXiv 2601.19936, find that it helps); N is then the number
of windows, N − w + 1, and a text shorter than w is not smoothed. A whole grid of k costs one sort
and one cumulative sum per example and window.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache, update_wrapper
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from detect.detector import EMPTY_SELECTION, OPTION, Column, Detector, Score, each_example
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.keyed import F64
from inject.settings import Settings

LEAST_VARIANCE = 1e-6
"""Lower limit of a variance, so that a certain token causes no division by zero."""


def in_deviations(statistics: TokenStatistics, centre: npt.NDArray[np.floating]) -> F64:
    """Return (ℓ_i − centre_i) / σ_i of each token, [N]; σ² is at least 1e-6."""
    variance = np.maximum(statistics.std_log_prob.astype(np.float64) ** 2, LEAST_VARIANCE)
    difference = statistics.log_probability.astype(np.float64) - centre
    return difference / np.sqrt(variance)


class MinKParameters(Settings):
    """The share of tokens that counts."""

    k: Annotated[Decimal, Field(gt=0, le=1)] = Decimal("0.2")
    """Share of the tokens: the floor(N·k) least likely ones, computed exactly."""
    k_rule: Literal["at_least_one", "floor"] = "at_least_one"
    """With fewer than 1/k tokens, one is kept (`at_least_one`) or the text cannot be scored
    (`floor`)."""
    window: Annotated[int, Field(ge=1, le=1000, json_schema_extra=OPTION)] = 1
    """Tokens in the initial moving average; 1 for none."""


K_GRID = tuple(MinKParameters(k=Decimal(twentieth) / 20) for twentieth in range(1, 21))


def selected_count(count: int, setting: MinKParameters) -> int:
    """Return the number of selected tokens, of `count`: floor(N·k), or at least 1."""
    numerator, denominator = _fraction(setting.k)
    number = count * numerator // denominator
    return max(1, number) if setting.k_rule == "at_least_one" else number


# A grid requests the same few shares once per row and window.
@lru_cache(maxsize=1000)
def _fraction(share: Decimal) -> tuple[int, int]:
    return share.as_integer_ratio()


def lowest_means(
    values: npt.NDArray[np.floating], settings: Sequence[MinKParameters]
) -> list[Score]:
    """Return the mean of the lowest floor(N·k) values for each setting."""
    sums = np.cumsum(np.sort(values).astype(np.float64)).tolist()
    scores = []
    for setting in settings:
        number = selected_count(len(values), setting)
        scores.append(
            Score(sums[number - 1] / number)
            if number
            else Score(math.nan, f"{EMPTY_SELECTION}: {len(values)} tokens are fewer than 1/k")
        )
    return scores


def moving_average(values: npt.NDArray[np.floating], window: int) -> npt.NDArray[np.floating]:
    """Return the means of all windows of `width` neighbours, [N − w + 1]; [N] if N < w."""
    count = len(values)
    if window == 1 or count < window:
        return values
    sums = values.astype(np.float64)
    for width in range(2, window + 1):
        # Each window is summed separately, so that no rounding error accumulates along the text.
        sums = sums[: count - width + 1] + values[width - 1 :]
    return sums / window


def smoothed_lowest_means(
    values: npt.NDArray[np.floating], settings: Sequence[MinKParameters]
) -> list[Score]:
    """Return the mean of the lowest floor(k·N') moving averages for each setting."""
    scores: dict[int, Score] = {}
    for window in dict.fromkeys(setting.window for setting in settings):
        rows = [row for row, setting in enumerate(settings) if setting.window == window]
        averages = moving_average(values, window)
        means = lowest_means(averages, [settings[row] for row in rows])
        scores.update(zip(rows, means, strict=True))
    return [scores[row] for row in range(len(settings))]


def each_lowest(
    values: Callable[[TokenStatistics], npt.NDArray[np.floating]],
) -> Callable[[Evidence, Sequence[Any]], list[Column]]:
    """Return a detector's `score`: the means of the lowest of the values of a text's tokens."""

    def score(example: ExampleEvidence, settings: Sequence[MinKParameters]) -> list[Score]:
        return smoothed_lowest_means(values(example.statistics[TEXT]), settings)

    return each_example(update_wrapper(score, values))


DETECTOR = Detector(
    name="min_k",
    title="Min-K%",
    summary="mean log-probability of the least likely share k of the tokens",
    source="Shi et al. 2024 (Min-K% Prob), equation 1",
    needs=(View(TEXT),),
    aliases=("mink", "min_k_prob", "minkprob"),
    assumption="unseen texts have more tokens of very low probability than seen ones",
    order=50,
    parameters=MinKParameters,
    grid=K_GRID,
    score=each_lowest(lambda statistics: statistics.log_probability),
)
