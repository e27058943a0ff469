"""`gap_k`: how far the text's tokens are below the most likely token, in the worst spans.

Gap-K% (arXiv 2601.19936): g_i = (ℓ_i − max_v log p_v) / σ_i, at most 0, is averaged over a moving
window of w tokens, and the score is the mean of the floor(k·(N − w + 1)) smallest averages, at
least one. A text shorter than w is not smoothed. The authors use w = 6 for LLaMA models and 3 for
others. σ² is at least 1e-6, as in `min_k_plus_plus`; one of their scripts uses 1e-8, one no limit.
"""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from detect.access import Access
from detect.detector import Detector
from detect.detectors.min_k import MinKParameters, each_lowest, in_deviations
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.keyed import F64


class GapKParameters(MinKParameters):
    """The share of windows that counts, and their width."""

    window: Annotated[int, Field(ge=1, le=1000)] = 3
    """Tokens in the moving average."""


GRID = tuple(
    GapKParameters(k=Decimal(twentieth) / 20, window=window)
    for window in range(1, 11)
    for twentieth in range(1, 21)
)


def gaps(statistics: TokenStatistics) -> F64:
    """Return g_i of each token, [N]; σ² is at least 1e-6."""
    return in_deviations(statistics, statistics.top_log_probability)


DETECTOR = Detector(
    name="gap_k",
    title="Gap-K%",
    summary="standardised distance to the most likely token, in the worst share k of windows",
    source="arXiv 2601.19936 (Gap-K%, ACL 2026)",
    needs=(View(TEXT),),
    access=Access.DISTRIBUTION,
    assumption="no span of a seen text has tokens far below the target's own choice",
    aliases=("gap", "gapk"),
    order=62,
    parameters=GapKParameters,
    grid=GRID,
    score=each_lowest(gaps),
)
