"""`lowercase`: mean ℓ of the lower-cased text over mean ℓ of the text (Carlini et al. 2021).

Both are negative, so a member, whose exact casing the model learned, scores higher. A caseless text
scores exactly 1; a note reports their number.
"""

from detect.detector import Detector, one_score
from detect.detectors.loss import mean_log_probability
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.views import View
from detect.views import LOWERCASE, TEXT, view_text


def _score(example: ExampleEvidence) -> float | str:
    lowered, text = example.statistics[LOWERCASE], example.statistics[TEXT]
    if not len(lowered):
        return f"lower-cased text: {lowered.reason}"
    below = mean_log_probability(text)
    if below == 0:
        return "every token is certain (mean log-probability 0)"
    return mean_log_probability(lowered) / below


def _note(evidence: Evidence, setting: object) -> str | None:
    count = sum(text == view_text(LOWERCASE, text) for text in evidence.texts)
    if not count:
        return None
    return f"{count} of {len(evidence.texts)} texts have no upper-case letter and score exactly 1"


DETECTOR = Detector(
    name="lowercase",
    title="Lowercase",
    summary="mean log-probability of the lower-cased text over that of the text",
    source="Carlini et al. 2021",
    needs=(View(TEXT), View(LOWERCASE)),
    aliases=("lower",),
    assumption="a model learns the casing of what it saw, and the texts have upper-case letters",
    order=30,
    score=one_score(_score, _note),
)
