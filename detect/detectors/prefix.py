"""`prefix`: given the beginning of a text, does the model write the rest?

Prefix probing (Karamolegkou et al. 2023, as in Ravichander et al. 2025, appendix E): the longest
common subsequence of words of the greedy continuation and the true rest, over the words of the
rest. Other measures of the same continuation: ROUGE-L recall, exact repetition, and the token sort
ratio: Duarte et al. 2024 (section 5.1.1) call a completion correct from 80 on, after beginnings of
32 or 50 tokens. `instruction` puts a paper's prompt before the text.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import update_wrapper
from typing import Annotated, Any, Literal

from pydantic import Field

from detect.access import Access
from detect.detector import Detector, Score, each_setting
from detect.evidence import ExampleEvidence
from detect.evidence.continuations import Continuations
from detect.generation.continuations import ContinuationRequest, Continued, PromptLength, Unit
from detect.generation.text_overlap import (
    common_subsequence,
    repeats,
    rouge_l_recall,
    token_sort_ratio,
)
from inject.settings import PositiveInt, Settings

CORRECT = 80
"""Lowest token sort ratio of a correct completion."""
Measure = Literal["lcs", "rouge_l", "exact", "token_sort", "correct"]
MEASURES: Mapping[Measure, Callable[[str, str], float]] = {
    "lcs": common_subsequence,
    "rouge_l": rouge_l_recall,
    "exact": lambda written, remainder: float(repeats(written, remainder)),
    "token_sort": token_sort_ratio,
    "correct": lambda written, remainder: float(token_sort_ratio(written, remainder) >= CORRECT),
}
INSTRUCTIONS = {
    "none": "",
    "fiction": "Please complete the following text with more than 150 words:",
    "news": "Complete exactly and don't hallucinate.",
}


class PrefixParameters(Settings):
    """The beginning, and the comparison of the continuation."""

    beginning: Unit = "share"
    """The beginning is a `share` of the words, or a number of `words` or `tokens`; after tokens,
    the rest has the same number of tokens."""
    amount: Annotated[Decimal, Field(gt=0)] = Decimal("0.5")
    """The share (below 1) or the number: 50 words, or 32 or 50 tokens, in the papers."""
    measure: Measure = "lcs"
    """`lcs`, `rouge_l` recall, `exact`, `token_sort` ratio, or whether that is `correct`."""
    instruction: Literal["none", "fiction", "news"] = "none"
    """Prompt before the beginning, for models that follow instructions."""
    max_tokens: PositiveInt = 512
    """Maximum tokens of a continuation; in any case it is about as long as the rest."""


def _request(parameters: PrefixParameters) -> ContinuationRequest:
    return ContinuationRequest(
        beginning=PromptLength(parameters.beginning, parameters.amount),
        max_tokens=parameters.max_tokens,
        instruction=INSTRUCTIONS[parameters.instruction],
    )


def _score(written: Continued, setting: PrefixParameters) -> float:
    return MEASURES[setting.measure](written.texts[0], written.rest)


def each_written(
    request: Callable[[Any], ContinuationRequest], score: Callable[[Continued, Any], float]
) -> dict[str, Any]:
    """Return needs and `score` of a detector that scores each text's continuations.

    Args:
        request: returns the request of a setting.
        score: returns one text's score under a setting.
    """

    def score_written(example: ExampleEvidence, setting: Any) -> Score:
        written = example.continuations[request(setting)]
        if written.reason is not None:
            return Score(math.nan, written.reason)
        return Score(score(written, setting))

    return {
        "further_needs": lambda setting: (Continuations(request(setting)),),
        "score": each_setting(update_wrapper(score_written, score)),
    }


DETECTOR = Detector(
    name="prefix",
    title="Prefix probing",
    summary="how much of a text's rest the model writes after its beginning",
    source="Ravichander et al. 2025, appendix E; Duarte et al. 2024, section 5.1.1",
    needs=(),
    access=Access.TEXT,
    assumption="a model that saw the text repeats its words, and its rest cannot be guessed",
    aliases=("prefix_probing", "lcs", "verbatim_completion"),
    order=120,
    parameters=PrefixParameters,
    grid=tuple(PrefixParameters(measure=measure) for measure in MEASURES if measure != "correct"),
    **each_written(_request, _score),
)
