"""Task accuracy: does a model choose the right answer of a benchmark's question?

Each answer is scored by its log-probability after the prompt; for answers in words by the mean
over their UTF-8 bytes. `plain` takes the answer with the highest score. `calibrated` first
subtracts the score of the answer after content-free prompts (contextual calibration, Zhao et al.
2021, equation 1 with a diagonal matrix; for texts the same difference is the domain conditional
PMI of Holtzman et al. 2021), so that a label that a model favours anyway gains nothing.

Results contain ids and figures, never a text. Cost: one pass over the tokens of each different
prompt, which its answers share (`detect.engine.prefix_tree`), and over the answers after it.
Context and start token are those of `detect.engine`; a prompt that is too long keeps its end.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from detect.engine.encoding import adds_start_token
from detect.engine.prefix_tree import Progress, SharedPrefixes
from detect.engine.target import Target
from detect.task_accuracy.answers import AccuracyRow
from detect.task_accuracy.prompts import FORMS, Question, ask
from inject.corpus.tokenizer import encode_with_offsets
from inject.examples.example import Example, Span
from inject.keyed import F64
from train.completion import answer_tokens

Scores = Mapping[tuple[str, str], float]
"""Prompt and answer: the answer's log-probability."""

UNLIMITED_CONTEXT = 1 << 20
"""Maximum tokens of one sequence if neither the model nor its tokenizer sets a limit."""
NO_QUESTION = "its dataset has no question with a closed answer"
NO_ANSWER = "its right answer is unknown, or a field is missing"


def task_accuracy(
    target: Target,
    examples: Sequence[Example],
    *,
    kinds: Mapping[str, str],
    batch_tokens: int | None = None,
    progress: Progress | None = None,
) -> list[AccuracyRow]:
    """Return a model's answer to each example, in the order given.

    Args:
        target: model and tokenizer.
        examples: members and non-members.
        kinds: name of an example's dataset in the experiment → name of the dataset; a missing name
            maps to itself.
        batch_tokens: padded tokens of one batch; by default chosen for the device.
        progress: called with (tokens done, tokens in all).
    """
    questions = [ask(kinds.get(row.dataset, row.dataset), row.fields) for row in examples]
    pairs = dict.fromkeys(
        (prompt, answer)
        for question in questions
        if question is not None
        for prompt in (question.prompt, *question.content_free)
        for answer in question.answers
    )
    scores = answer_scores(target, list(pairs), batch_tokens=batch_tokens, progress=progress)
    rows = []
    for example, question in zip(examples, questions, strict=True):
        own = AccuracyRow(example.example_id, example.dataset, example.side)
        if question is None:
            kind = kinds.get(example.dataset, example.dataset)
            rows.append(own._replace(reason=_reason(kind)))
            continue
        plain, calibrated = _plain_and_calibrated(question, scores)
        rows.append(
            own._replace(
                answers=len(question.answers),
                correct_plain=_best_answer(plain) == question.gold,
                correct_calibrated=_best_answer(calibrated) == question.gold,
                probability_plain=_share(plain, question.gold),
                probability_calibrated=_share(calibrated, question.gold),
            )
        )
    return rows


def answer_scores(
    target: Target,
    pairs: Sequence[tuple[str, str]],
    *,
    batch_tokens: int | None = None,
    progress: Progress | None = None,
) -> dict[tuple[str, str], float]:
    """Return the log-probability of each answer after its prompt.

    Args:
        target: model and tokenizer.
        pairs: prompt and answer, which begins with a blank; each pair once.
        batch_tokens: padded tokens of one batch; by default chosen for the device.
        progress: called with (tokens done, tokens in all).
    """
    tokenizer = target.tokenizer
    start = [tokenizer.bos_token_id] if adds_start_token(tokenizer) else []
    room = (target.context or UNLIMITED_CONTEXT) - len(start)
    texts = [prompt + answer for prompt, answer in pairs]
    sequences, counts = [], []
    for (prompt, _), text, (ids, offsets) in zip(
        pairs, texts, encode_with_offsets(tokenizer, texts), strict=True
    ):
        scored = answer_tokens(offsets, Span(len(prompt), len(text)))
        sequences.append((*start, *ids[-room:].tolist()))
        # From the answer's first token to the end of the text; at least one token must precede it.
        counts.append(min(len(ids) - int(np.argmax(scored)), len(sequences[-1]) - 1))
    sums = SharedPrefixes(target, batch_tokens).sums(sequences, counts, progress)
    return dict(zip(pairs, sums.tolist(), strict=True))


def _reason(dataset: str) -> str:
    return NO_ANSWER if dataset in FORMS else NO_QUESTION


def _plain_and_calibrated(question: Question, scores: Scores) -> tuple[F64, F64]:
    """Return the plain and the calibrated score of each answer, shape [answers] each."""
    own, *empty = (
        np.array([scores[prompt, answer] for answer in question.answers])
        for prompt in (question.prompt, *question.content_free)
    )
    if question.worded:
        lengths = np.array([len(answer.encode()) for answer in question.answers])
        # Averaged as logarithms: probabilities of whole texts differ by powers of ten, and their
        # mean would be that of a single prompt.
        return own / lengths, own - np.mean(empty, axis=0)
    # Probabilities among the labels, averaged over the content-free prompts.
    anyway = np.log(np.mean([np.exp(values - _log_sum(values)) for values in empty], axis=0))
    return own, own - anyway


def _best_answer(scores: F64) -> int:
    """Return the answer with the highest score; None for ties, since a choice would be a guess."""
    best = np.flatnonzero(scores == scores.max())
    return int(best[0]) if len(best) == 1 else -1


def _share(scores: F64, gold: int) -> float:
    return float(np.exp(scores[gold] - _log_sum(scores)))


def _log_sum(scores: F64) -> float:
    top = float(scores.max())
    return top + math.log(float(np.exp(scores - top).sum()))
