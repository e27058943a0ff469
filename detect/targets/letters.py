"""Multiple-choice questions → answers: the step, and queries of letters from a server.

A local model gives the probabilities of the labels (`detect.engine.label_probabilities`). A server
lists its model's likeliest tokens, or only writes texts.

Duarte et al. 2024 (DE-COP), section 5: temperature 0, and the answer is a letter. An answer that
names no letter counts as wrong.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detect.choices import (
    LABELS,
    NO_LETTER,
    ORDERS,
    ChoiceAnswers,
    ChoiceQuestion,
    choice_question,
    write_answers,
)
from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from detect.target_identity import MeasuredCost, write_cost
from detect.targets.asked_text_model import asked_text_model, is_served
from detect.targets.text_model import Progress, Sampling, TextModel
from inject.examples.example import read_examples, read_held_out
from inject.step import StepContext

T = TypeVar("T")
ANSWER = Sampling(max_tokens=8)
# `A` is also a word: if another word follows, it is not a label.
_ALONE = re.compile(r"[\W_]*([B-D]|A(?!\s+(?!is\b)\w))(?!\w|['’]\w)")
_SAID = re.compile(r"\b(?:[Aa]nswer|[Oo]ption|[Cc]hoice)\b(?:\s+is)?:?[\W_]*([A-D])(?!\w|['’]\w)")


def build(context: StepContext, text_model: TextModel | None = None) -> None:
    """Query the model about every row, and write the answers.

    Args:
        context: context of the step.
        text_model: queried instead of the step's model (see `asked_text_model`).
    """
    held_out = "rows" in context.settings
    rows = (read_held_out if held_out else read_examples)(context.inputs["examples"])
    questions = [choice_question(row.text, row.paraphrases, row.fields) for row in rows]

    def progress(done: int, total: int) -> None:
        context.report(done, total, unit="questions")

    if is_served(context):
        with asked_text_model(context, text_model) as model:
            answers = _ask_server(model, questions, progress, calibrates=held_out)
        rows = rows[: len(answers)]
    else:
        answers = _ask_local(context, questions, progress)
    write_answers(
        context.out,
        [row.example_id for row in rows],
        [
            replace(answer, document=f"{row.dataset}\n{row.group}")
            for row, answer in zip(rows, answers, strict=True)
        ],
    )
    answered = sum(answer.log_probability is not None for answer in answers)
    tokens_in = sum(answer.tokens_in for answer in answers)
    write_cost(context.out, MeasuredCost(passes=len(ORDERS) * answered, tokens_in=tokens_in))


def _ask_local(
    context: StepContext, questions: Sequence[ChoiceQuestion | str], progress: Progress
) -> list[ChoiceAnswers]:
    from detect.engine.label_probabilities import label_probabilities

    detect = DetectSettings.model_validate(context.execution["detect"])
    target = open_target(context)
    return label_probabilities(
        target, questions, batch_tokens=detect.batch_tokens, progress=progress
    )


def _ask_server(
    model: Any,
    questions: Sequence[ChoiceQuestion | str],
    progress: Progress,
    *,
    calibrates: bool,
) -> list[ChoiceAnswers]:
    """Request the labels' probabilities, else letters, which allow no calibration."""
    if model.gives_log_probabilities():
        return ask_label_probabilities(model, questions, progress)
    return [] if calibrates else ask_letters(model, questions, progress)


def ask_letters(
    model: TextModel, questions: Sequence[ChoiceQuestion | str], progress: Progress | None = None
) -> list[ChoiceAnswers]:
    """Return the answers to each question, in the order given; 24 requests each.

    Args:
        model: the model that writes the answers.
        questions: a question, or the reason for its absence.
        progress: called with (prompts done, prompts in all).
    """
    return _ask_and_parse(
        questions,
        lambda prompts: model.answer(prompts, ANSWER, progress=progress),
        lambda replies: ChoiceAnswers(
            letters=np.array([letter_of(reply[0].text) for reply in replies], np.int8)
        ),
    )


def ask_label_probabilities(
    model: Any,
    questions: Sequence[ChoiceQuestion | str],
    progress: Progress | None = None,
) -> list[ChoiceAnswers]:
    """Return the labels' log-probabilities for each question, in the order given.

    An unlisted label gets the value of the least likely listed token, an upper bound.

    Args:
        model: a model that lists its likeliest tokens (`first_tokens` of `ServerTextModel`).
        questions: a question, or the reason for its absence.
        progress: called with (prompts done, prompts in all).
    """
    return _ask_and_parse(
        questions,
        lambda prompts: model.first_tokens(prompts, progress=progress),
        lambda lists: ChoiceAnswers(
            log_probability=np.array([of_labels(listed) for listed in lists], np.float32)
        ),
    )


def of_labels(listed: Mapping[str, float]) -> list[float]:
    """Return the log-probability of each label among listed tokens, with or without a blank."""
    least = min(listed.values(), default=0.0)
    log_probabilities = []
    for label in LABELS:
        values = [value for token, value in listed.items() if token.strip() == label]
        log_probabilities.append(float(np.logaddexp.reduce(values)) if values else least)
    return log_probabilities


def _ask_and_parse(
    questions: Sequence[ChoiceQuestion | str],
    ask: Callable[[list[str]], Sequence[T]],
    read: Callable[[Sequence[T]], ChoiceAnswers],
) -> list[ChoiceAnswers]:
    """Return the parsed replies to each question, one per order; a reason is passed on."""
    prompts = [
        question.prompt(order)
        for question in questions
        if not isinstance(question, str)
        for order in ORDERS
    ]
    replies = iter(ask(prompts) if prompts else ())
    return [
        ChoiceAnswers(reason=question)
        if isinstance(question, str)
        else read([next(replies) for _ in ORDERS])
        for question in questions
    ]


def letter_of(answer: str) -> int:
    """Return the index of the label that an answer names, or -1."""
    match = _ALONE.match(answer) or _SAID.search(answer)
    return LABELS.index(match.group(1)) if match else NO_LETTER
