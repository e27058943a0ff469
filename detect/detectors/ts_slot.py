"""`ts_slot`: can the model fill in a masked word of a question, or a masked wrong option?

Deng et al. 2024, "Investigating Data Contamination in Modern Benchmarks for Large Language Models"
(TS-Guessing). `question` masks an informative word of the question, `option` one wrong option,
drawn by the text; the answer is compared with the masked part: exactly, or by ROUGE-L F1. Options
are not masked if there are only two, since the other one reveals the answer.

The authors let ChatGPT name the informative word; here it is the longest one that is not common. A
text without a `question` field counts as the question. `plain` is ours, for models that only
continue texts: they continue the text up to the mask.
"""

import math
from typing import Literal

from detect.access import Access
from detect.detector import Detector, Score
from detect.detectors.info_probe import each_guess
from detect.generation.guesses import GuessedText, GuessRequest
from detect.generation.text_overlap import rouge_l_f1
from inject.settings import PositiveInt, Settings


class SlotParameters(Settings):
    """The masked part, the prompt, and the comparison of the answer."""

    slot: Literal["question", "option"] = "question"
    """A word of the question, or a wrong option."""
    prompt: Literal["test", "plain"] = "test"
    """The authors' prompt; `plain` lets the model continue."""
    measure: Literal["exact", "rouge_l"] = "exact"
    """Exact match, or ROUGE-L F1, with the masked part."""
    max_tokens: PositiveInt = 32
    """Maximum tokens of an answer."""


def request_of(parameters: SlotParameters) -> GuessRequest:
    """Return the request to the model."""
    return GuessRequest(
        method=parameters.slot,
        prompt=parameters.prompt,
        limit=1,
        threshold=0.0,
        max_tokens=parameters.max_tokens,
    )


def slot_score(guessed: GuessedText, parameters: SlotParameters) -> Score:
    """Return one text's score."""
    if guessed.reason is not None:
        return Score(math.nan, guessed.reason)
    if parameters.measure == "exact":
        return Score(float(guessed.exact(parameters.prompt)[0]))
    return Score(rouge_l_f1(guessed.guesses(parameters.prompt)[0], guessed.wanted[0]))


DETECTOR = Detector(
    name="ts_slot",
    title="TS-Guessing",
    summary="whether the model fills in a masked word of the question, or a masked wrong option",
    source="Deng et al. 2024 (TS-Guessing)",
    needs=(),
    access=Access.TEXT,
    assumption="a masked word, or a wrong option, can only be reconstructed from memory",
    aliases=("ts_guessing", "ts-slot"),
    order=132,
    libraries=("unicode",),
    parameters=SlotParameters,
    grid=tuple(
        SlotParameters(prompt=prompt, measure=measure)
        for prompt in ("test", "plain")
        for measure in ("exact", "rouge_l")
    ),
    **each_guess(request_of, slot_score),
)
