"""Multiple-choice questions → letters, from a model that only writes, or lists what it might write.

Duarte et al. 2024 (DE-COP), section 5: temperature 0, and the answer is a letter. An answer that
names no letter counts as wrong.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

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
    prompts = _prompts(questions)
    replies = iter(model.answer(prompts, ANSWER, progress=progress)) if prompts else iter(())
    found = []
    for question in questions:
        if isinstance(question, str):
            found.append(ChoiceAnswers(reason=question))
            continue
        letters = [letter_of(next(replies)[0].text) for _ in ORDERS]
        found.append(ChoiceAnswers(letters=np.array(letters, np.int8)))
    return found


class ListsTokens(Protocol):
    """A model that lists what it would most likely write first."""

    def first_tokens(
        self, questions: Sequence[str], *, progress: Progress | None = None
    ) -> list[Mapping[str, float]]:
        """Return the likeliest first tokens of each answer, with their log-probabilities."""


def ask_label_probabilities(
    model: ListsTokens,
    questions: Sequence[ChoiceQuestion | str],
    progress: Progress | None = None,
) -> list[ChoiceAnswers]:
    """Return the labels' log-probabilities for each question, in the order given.

    A label that is not listed is given that of the least likely token that is: it has no more.

    Args:
        model: what lists its likeliest tokens.
        questions: a question, or the reason why there is none.
        progress: called with (prompts done, prompts in all).
    """
    prompts = _prompts(questions)
    lists = iter(model.first_tokens(prompts, progress=progress)) if prompts else iter(())
    found = []
    for question in questions:
        if isinstance(question, str):
            found.append(ChoiceAnswers(reason=question))
            continue
        rows = [of_labels(next(lists)) for _ in ORDERS]
        found.append(ChoiceAnswers(log_probability=np.array(rows, np.float32)))
    return found


def of_labels(listed: Mapping[str, float]) -> list[float]:
    """Return the log-probability of each label among listed tokens, with or without a blank."""
    least = min(listed.values(), default=0.0)
    found = []
    for label in LABELS:
        values = [value for token, value in listed.items() if token.strip() == label]
        found.append(float(np.logaddexp.reduce(values)) if values else least)
    return found


def _prompts(questions: Sequence[ChoiceQuestion | str]) -> list[str]:
    return [
        question.prompt(order)
        for question in questions
        if not isinstance(question, str)
        for order in ORDERS
    ]


def letter_of(answer: str) -> int:
    """Return the place of the label that an answer names, or -1."""
    found = _ALONE.match(answer) or _SAID.search(answer)
    return LABELS.index(found.group(1)) if found else NO_LETTER
