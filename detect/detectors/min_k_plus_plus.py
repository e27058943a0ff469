"""`min_k_plus_plus`: Min-K over z_i = (ℓ_i − μ_i) / σ_i (Zhang et al. 2024).

μ and σ are expectations under the model's own p, not plain means over the vocabulary. With a
`window` the z_i are averaged over a moving window first (arXiv 2601.19936), as in `min_k`.
"""

from detect.access import Access
from detect.detector import Detector
from detect.detectors.min_k import K_GRID, MinKParameters, each_lowest, in_deviations
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.keyed import F64


def standardised(statistics: TokenStatistics) -> F64:
    """Return z_i of each token, [N]; σ² is at least 1e-6."""
    return in_deviations(statistics, statistics.mean_log_prob)


DETECTOR = Detector(
    name="min_k_plus_plus",
    title="Min-K%++",
    summary="Min-K over log-probabilities standardised by the model's own distribution",
    source="Zhang et al. 2024 (Min-K%++)",
    needs=(View(TEXT),),
    access=Access.DISTRIBUTION,
    aliases=("mink++", "min_k++", "minkplusplus"),
    assumption=(
        "training makes each seen token a local maximum of the likelihood, so that it ranks "
        "high among the expected tokens"
    ),
    order=60,
    parameters=MinKParameters,
    grid=K_GRID,
    score=each_lowest(standardised),
)
