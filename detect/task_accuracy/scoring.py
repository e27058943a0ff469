"""Task accuracy: does a model choose the right answer of a benchmark's question?

Each answer is scored by its log-probability after the prompt; for answers in words by the mean
over their UTF-8 bytes. `plain` takes the answer with the highest score. `calibrated` first
subtracts the score of the answer after content-free prompts (contextual calibration, Zhao et al.
2021, equation 1 with a diagonal matrix; for texts the same difference is the domain conditional
PMI of Holtzman et al. 2021), so that a label that a model likes anyway gains nothing.

Results hold ids and figures, never a text. Cost: one pass over each different prompt; answers of
one token share it. Batches, context and start token are those of `detect.engine`; a prompt that is
too long keeps its end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from detect.engine.batching import default_batch_tokens, pad_sequences, run_in_batches
from detect.engine.encoding import adds_start_token
from detect.engine.target import Target
from detect.task_accuracy.answers import AccuracyRow
from detect.task_accuracy.prompts import FORMS, Question, ask
from inject.corpus.tokenizer import encode_with_offsets
from inject.examples.example import Example, Span
from train.completion import answer_tokens

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

UNLIMITED_CONTEXT = 1 << 20
"""Tokens of one sequence where neither the model nor its tokenizer sets a limit."""
BATCH_LOGITS = 1 << 26
"""Most logits of one batch: a quarter of a GB in float32."""
NO_QUESTION = "its dataset has no question with a closed answer"
NO_ANSWER = "nobody knows its right answer, or a field is missing"


@dataclass
class _Requests:
    """What the model is to score, each different history once."""

    limit: int
    """Most tokens of one sequence."""
    start: Sequence[int]
    """The start token, where sequences have one."""
    targets: dict[tuple[int, ...], list[tuple[int, int]]] = field(default_factory=dict)
    """Sequence → (slot, tokens at its end that the slot sums up)."""
    labels: dict[tuple[int, ...], dict[int, list[int]]] = field(default_factory=dict)
    """History → next token → slots."""
    slots: int = 0

    def add(self, ids: I64, scored: int) -> int:
        """Ask for the log-probability of the last `scored` tokens; return the slot of the sum."""
        room = self.limit - len(self.start)
        kept = (*self.start, *ids[-room:].tolist())
        # One token must be left to look back at.
        scored = min(scored, len(kept) - 1)
        slot = self.slots
        self.slots += 1
        if scored == 1:
            self.labels.setdefault(kept[:-1], {}).setdefault(kept[-1], []).append(slot)
        else:
            self.targets.setdefault(kept, []).append((slot, scored))
        return slot


def task_accuracy(
    target: Target,
    examples: Sequence[Example],
    *,
    kinds: Mapping[str, str],
    batch_tokens: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[AccuracyRow]:
    """Return how a model answers each example, in the order given.

    Args:
        target: model and tokenizer.
        examples: members and non-members.
        kinds: name of an example's dataset in the experiment → name of the dataset; a name that is
            missing stands for itself.
        batch_tokens: padded tokens of one batch; by default chosen for the device.
        progress: called with (tokens done, tokens in all).
    """
    asked = [ask(kinds.get(one.dataset, one.dataset), one.fields) for one in examples]
    tokenizer = target.tokenizer
    start = [tokenizer.bos_token_id] if adds_start_token(tokenizer) else []
    requests = _Requests(limit=target.context or UNLIMITED_CONTEXT, start=start)
    slots = _request(requests, [one for one in asked if one], tokenizer)
    scores = _scored(
        target,
        requests,
        batch_tokens or default_batch_tokens(target),
        progress or (lambda done, total: None),
    )
    rows = []
    found = iter(slots)
    for example, question in zip(examples, asked, strict=True):
        own = AccuracyRow(example.example_id, example.dataset, example.side)
        if question is None:
            known = kinds.get(example.dataset, example.dataset)
            rows.append(own._replace(reason=_reason(known)))
            continue
        plain, calibrated = _answer_scores(question, next(found), scores)
        rows.append(
            own._replace(
                answers=len(question.answers),
                correct_plain=_chosen(plain) == question.gold,
                correct_calibrated=_chosen(calibrated) == question.gold,
                probability_plain=_share(plain, question.gold),
                probability_calibrated=_share(calibrated, question.gold),
            )
        )
    return rows


def _reason(dataset: str) -> str:
    return NO_ANSWER if dataset in FORMS else NO_QUESTION


def _request(
    requests: _Requests, asked: Sequence[Question], tokenizer: Any
) -> list[list[list[int]]]:
    """Ask for every answer after every prompt; slots by question, prompt (own first), answer."""
    pairs = [
        (prompt, answer)
        for question in asked
        for prompt in (question.prompt, *question.content_free)
        for answer in question.answers
    ]
    texts = [prompt + answer for prompt, answer in pairs]
    slots = []
    for (prompt, _), text, (ids, offsets) in zip(
        pairs, texts, encode_with_offsets(tokenizer, texts), strict=True
    ):
        scored = answer_tokens(offsets, Span(len(prompt), len(text)))
        # From the answer's first token to the end of the text.
        count = len(ids) - int(np.argmax(scored))
        slots.append(requests.add(ids, count))
    found, position = [], 0
    for question in asked:
        by_prompt = []
        for _ in range(1 + len(question.content_free)):
            by_prompt.append(slots[position : position + len(question.answers)])
            position += len(question.answers)
        found.append(by_prompt)
    return found


def _answer_scores(question: Question, slots: list[list[int]], scores: F64) -> tuple[F64, F64]:
    """Return the plain and the calibrated score of each answer, shape [answers] each."""
    own, *empty = (scores[one] for one in slots)
    if question.worded:
        lengths = np.array([len(answer.encode()) for answer in question.answers])
        # Averaged as logarithms: probabilities of whole texts differ by powers of ten, and their
        # mean would be that of one prompt alone.
        return own / lengths, own - np.mean(empty, axis=0)
    # Probabilities among the labels, averaged over the content-free prompts.
    anyway = np.log(np.mean([np.exp(one - _log_sum(one)) for one in empty], axis=0))
    return own, own - anyway


def _chosen(scores: F64) -> int:
    """Return the answer with the highest score; of equal ones none, as choosing is a guess."""
    best = np.flatnonzero(scores == scores.max())
    return int(best[0]) if len(best) == 1 else -1


def _share(scores: F64, gold: int) -> float:
    return float(np.exp(scores[gold] - _log_sum(scores)))


def _log_sum(scores: F64) -> float:
    top = float(scores.max())
    return top + math.log(float(np.exp(scores - top).sum()))


@torch.inference_mode()
def _scored(
    target: Target,
    requests: _Requests,
    batch_tokens: int,
    progress: Callable[[int, int], None],
) -> F64:
    """Return the log-probability of every slot, shape [slots]."""
    scores = np.zeros(requests.slots)
    sequences = sorted({*requests.targets, *requests.labels}, key=lambda ids: (-len(ids), ids))
    total, done = sum(map(len, sequences)), 0
    longest = max((n for slots in requests.targets.values() for _, n in slots), default=0)
    vocabulary = target.model.config.get_text_config().vocab_size
    for batch, log_probability in run_in_batches(
        target,
        sequences,
        lambda batch: _last_log_probabilities(target, batch, requests),
        length=len,
        batch_tokens=batch_tokens,
        max_sequences=max(1, BATCH_LOGITS // ((1 + longest) * vocabulary)),
    ):
        for row, sequence in enumerate(batch):
            for token, slots in requests.labels.get(sequence, {}).items():
                scores[slots] = float(log_probability[row, -1, token])
            for slot, scored in requests.targets.get(sequence, ()):
                # The state before a token predicts it; the last state predicts what is not there.
                own = torch.tensor(sequence[-scored:])[:, None]
                scores[slot] = float(log_probability[row, -1 - scored : -1].gather(-1, own).sum())
        done += sum(map(len, batch))
        progress(done, total)
    return scores


def _last_log_probabilities(
    target: Target, batch: Sequence[tuple[int, ...]], requests: _Requests
) -> torch.Tensor:
    """Return log-probabilities at the last positions that are scored, [batch, kept, vocabulary]."""
    kept = 1 + max(
        (scored for one in batch for _, scored in requests.targets.get(one, ())), default=0
    )
    # Padding stands to the left, so that what is scored stands at one end.
    padded = pad_sequences(target, batch, side="left", always_mask=True)
    few = {"logits_to_keep": kept} if target.takes("logits_to_keep") else {}
    logits = target.model(**padded.inputs, **few, use_cache=False).logits[:, -kept:]
    return torch.log_softmax(logits.float(), dim=-1).cpu().double()
