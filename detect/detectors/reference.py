"""`reference`: how much likelier the target finds the text than a reference model does.

The reference model reads the text through its own tokenizer, so the two means are over
different tokens (Carlini et al. 2021).
"""

import math
from typing import Literal

from detect.detector import Detector, Score, each_setting
from detect.detectors.loss import mean_log_probability
from detect.detectors.recall import ratio
from detect.evidence import ExampleEvidence
from detect.evidence.views import Reference, View
from detect.views import TEXT
from inject.settings import Settings


class ReferenceParameters(Settings):
    """The comparison of the two means."""

    variant: Literal["difference", "ratio"] = "difference"
    """`difference`: mean ℓ − mean ℓ_ref; `ratio`: mean ℓ_ref / mean ℓ (both negative)."""


def _score(example: ExampleEvidence, setting: ReferenceParameters) -> Score:
    other = example.reference
    if other is None or not len(other):
        reason = f"reference model: {'no statistics' if other is None else other.reason}"
        return Score(math.nan, reason)
    mean = mean_log_probability(example.statistics[TEXT])
    reference = mean_log_probability(other)
    return Score(mean - reference) if setting.variant == "difference" else ratio(reference, mean)


DETECTOR = Detector(
    name="reference",
    title="Reference",
    summary="mean log-probability less that under a reference model",
    source="Carlini et al. 2021",
    needs=(View(TEXT), Reference()),
    aliases=("ref",),
    assumption=(
        "the reference model saw none of the texts and finds them as hard as a target that had "
        "not seen them"
    ),
    order=40,
    parameters=ReferenceParameters,
    grid=(ReferenceParameters(), ReferenceParameters(variant="ratio")),
    score=each_setting(_score),
)
