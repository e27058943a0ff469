"""`surp`: mean ℓ over surprising tokens, at which the model was certain and wrong.

Zhang and Wu 2024, "Adaptive Pre-training Data Detection", equations 1-4.
Surprising are the tokens with H_i < entropy and ℓ_i below the k-th percentile of ℓ. The grid of
20 × 10 settings costs one sort and one cumulative sum for each entropy threshold.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from detect.access import Access
from detect.detector import EMPTY_SELECTION, Detector, Score, each_example, exact_floor
from detect.detectors.min_k import MinKParameters, lowest_means
from detect.evidence import ExampleEvidence
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import PositiveFloat, Settings


class SurpParameters(Settings):
    """The two thresholds, and their edge cases."""

    entropy: PositiveFloat = 2.0
    """ε: only tokens whose distribution has less entropy than this, in nats."""
    k: Annotated[Decimal, Field(gt=0, le=100)] = Decimal(40)
    """Only tokens whose log-probability is below this percentile of the text's own."""
    selection: Literal["percentile", "count"] = "percentile"
    """`percentile`: strictly below it, by linear interpolation (the paper); `count`: the
    floor(N·k/100) lowest (public code)."""
    empty: Literal["nan", "min_k"] = "nan"
    """If no token remains: no score, or that of `min_k` with the same share."""


GRID = tuple(
    SurpParameters(entropy=half / 2, k=Decimal(k))
    for half in range(1, 21)
    for k in range(10, 101, 10)
)


def strictly_below(ordered: npt.NDArray[np.floating], percent: Fraction) -> int:
    """Return the number of sorted values [N] strictly below their percentile.

    The percentile is interpolated linearly, at (N − 1)·percent/100; counted exactly, without
    rounding: between two different values the lower one is always below it.
    """
    position = (len(ordered) - 1) * percent / 100
    index = math.floor(position)
    if position > index and ordered[index] < ordered[index + 1]:
        return index + 1
    return int(np.searchsorted(ordered, ordered[index], side="left"))


def surp_scores(statistics: TokenStatistics, settings: Sequence[SurpParameters]) -> list[Score]:
    """Return the score under each setting (larger = member)."""
    order = np.argsort(statistics.log_probability, kind="stable")
    ordered = statistics.log_probability[order]
    entropy = statistics.entropy[order]
    sums: dict[float, npt.NDArray[np.float64]] = {}
    counts: dict[float, npt.NDArray[np.int64]] = {}
    for threshold in {setting.entropy for setting in settings}:
        certain = entropy < threshold
        sums[threshold] = np.cumsum(np.where(certain, ordered, 0.0), dtype=np.float64)
        counts[threshold] = np.cumsum(certain)
    lows: dict[tuple[str, Decimal], int] = {}
    scores = []
    for setting in settings:
        key = setting.selection, setting.k
        if key not in lows:
            lows[key] = (
                strictly_below(ordered, Fraction(setting.k))
                if setting.selection == "percentile"
                else exact_floor(len(ordered), Fraction(setting.k) / 100)
            )
        low = lows[key]
        number = int(counts[setting.entropy][low - 1]) if low else 0
        if number:
            scores.append(Score(float(sums[setting.entropy][low - 1]) / number))
        elif setting.empty == "min_k":
            scores += lowest_means(ordered, [MinKParameters(k=setting.k / 100)])
        else:
            scores.append(Score(math.nan, f"{EMPTY_SELECTION}: no token below both thresholds"))
    return scores


def _score(example: ExampleEvidence, settings: Sequence[SurpParameters]) -> list[Score]:
    return surp_scores(example.statistics[TEXT], settings)


DETECTOR = Detector(
    name="surp",
    title="SURP",
    summary="mean log-probability of surprising tokens: low entropy, low probability",
    source="Zhang and Wu 2024 (SURP), equations 1-4",
    needs=(View(TEXT),),
    access=Access.DISTRIBUTION,
    assumption=(
        "where the model is certain and the true token is unlikely, members' tokens are less "
        "unlikely"
    ),
    order=70,
    parameters=SurpParameters,
    grid=GRID,
    score=each_example(_score),
)
