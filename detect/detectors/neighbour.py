"""`neighbour`: how much likelier a text is than its neighbours (neighbourhood comparison).

Mattern et al. 2023, equation 2: mean ℓ(x) − mean_j mean ℓ(x̃_j) over neighbours x̃_j that a masked
language model proposes (`detect.neighbours`). The *mean* over the neighbours; some public code uses
their maximum.
"""

from statistics import fmean

from detect.detector import Detector, one_score
from detect.detectors.loss import mean_log_probability
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.neighbours import NeighbourTexts
from detect.evidence.views import View
from detect.views import TEXT


def _score(example: ExampleEvidence) -> float | str:
    neighbours = example.neighbours
    if neighbours is None or neighbours.reason is not None:
        return f"neighbours: {'none' if neighbours is None else neighbours.reason}"
    return mean_log_probability(example.statistics[TEXT]) - fmean(neighbours.means)


def _note(evidence: Evidence, setting: object) -> str | None:
    counts = [len(row.means) for row in evidence.neighbours or () if row.means]
    few = sum(count < max(counts, default=0) for count in counts)
    if not few:
        return None
    most, least = max(counts), min(counts)
    return f"{few} of {len(counts)} texts have fewer than {most} neighbours, {least} at least"


DETECTOR = Detector(
    name="neighbour",
    title="Neighbour",
    summary="mean log-probability less that of texts with one token exchanged",
    source="Mattern et al. 2023, equation 2",
    needs=(View(TEXT), NeighbourTexts()),
    assumption=(
        "for a model that saw neither, the masked language model's texts are as likely as the "
        "text itself"
    ),
    aliases=("neighbor", "neighbourhood", "neighborhood"),
    order=100,
    score=one_score(_score, _note),
)
