"""`min_k`: the mean of the k·N smallest log-probabilities (Shi et al. 2024, equation 1).

A whole grid of k costs one sort and one cumulative sum an example.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from detect.detector import EMPTY_SELECTION, Detector, Score, each_example, whole
from detect.evidence import ExampleEvidence
from detect.needs import View
from detect.views import TEXT
from inject.settings import Settings


class MinKParameters(Settings):
    """Which share of the tokens counts."""

    k: Annotated[Decimal, Field(gt=0, le=1)] = Decimal("0.2")
    """Share of the tokens: the floor(N·k) least likely ones, computed exactly."""
    k_rule: Literal["at_least_one", "floor"] = "at_least_one"
    """A text of fewer than 1/k tokens keeps one (`at_least_one`) or cannot be scored (`floor`)."""


K_GRID = tuple(MinKParameters(k=Decimal(twentieth) / 20) for twentieth in range(1, 21))


def selected_count(count: int, setting: MinKParameters) -> int:
    """Return how many of `count` tokens are selected: floor(N·k), or at least 1."""
    number = whole(count, Fraction(setting.k))
    return max(1, number) if setting.k_rule == "at_least_one" else number


def lowest_means(
    values: npt.NDArray[np.floating], settings: Sequence[MinKParameters]
) -> list[Score]:
    """Return the mean of the lowest floor(N·k) values for each setting."""
    sums = np.cumsum(np.sort(values).astype(np.float64))
    scores = []
    for setting in settings:
        number = selected_count(len(values), setting)
        scores.append(
            Score(float(sums[number - 1]) / number)
            if number
            else Score(math.nan, f"{EMPTY_SELECTION}: {len(values)} tokens are fewer than 1/k")
        )
    return scores


def _score(example: ExampleEvidence, settings: Sequence[MinKParameters]) -> list[Score]:
    return lowest_means(example.statistics[TEXT].log_probability, settings)


DETECTOR = Detector(
    name="min_k",
    summary="mean log-probability of the least likely share k of the tokens",
    source="Shi et al. 2024 (Min-K% Prob), equation 1",
    needs=(View(TEXT),),
    aliases=("mink", "min_k_prob", "minkprob"),
    assumption=(
        "a text that was not seen has some tokens of very low probability, and a text that "
        "was seen has fewer"
    ),
    order=50,
    parameters=MinKParameters,
    grid=K_GRID,
    score=each_example(_score),
)
