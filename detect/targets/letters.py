"""Multiple-choice questions → letters, from a model that only writes.

Duarte et al. 2024 (DE-COP), section 5: temperature 0, and the answer is a letter. An answer that
names no letter counts as wrong.
"""

import re
from collections.abc import Sequence

import numpy as np

from detect.choices.answers import NO_LETTER, ChoiceAnswers
from detect.choices.question import LABELS, ORDERS, ChoiceQuestion
from detect.targets.text_model import Progress, Sampling, TextModel

ANSWER = Sampling(max_tokens=8)
# `A` is a word, too: with another word after it, it is no label.
_ALONE = re.compile(r"[\W_]*([B-D]|A(?!\s+(?!is\b)\w))(?!\w|['’]\w)")
_SAID = re.compile(r"\b(?:[Aa]nswer|[Oo]ption|[Cc]hoice)\b(?:\s+is)?:?[\W_]*([A-D])(?!\w|['’]\w)")


def ask_letters(
    model: TextModel, questions: Sequence[ChoiceQuestion | str], progress: Progress | None = None
) -> list[ChoiceAnswers]:
    """Return the answers to each question, in the order given; 24 are asked for each.

    Args:
        model: what writes the answers.
        questions: a question, or the reason why there is none.
        progress: called with (prompts done, prompts in all).
    """
    prompts = [
        question.prompt(order)
        for question in questions
        if not isinstance(question, str)
        for order in ORDERS
    ]
    replies = iter(model.answer(prompts, ANSWER, progress=progress)) if prompts else iter(())
    found = []
    for question in questions:
        if isinstance(question, str):
            found.append(ChoiceAnswers(reason=question))
            continue
        letters = [letter_of(next(replies)[0].text) for _ in ORDERS]
        found.append(ChoiceAnswers(letters=np.array(letters, np.int8)))
    return found


def letter_of(answer: str) -> int:
    """Return the place of the label that an answer names, or -1."""
    found = _ALONE.match(answer) or _SAID.search(answer)
    return LABELS.index(found.group(1)) if found else NO_LETTER
