"""Task accuracy: does a model choose the right answer of a benchmark's question?

Each answer is scored by its log-probability after the prompt; for answers in words by the mean
over their UTF-8 bytes. `plain` takes the answer with the highest score. `calibrated` first
subtracts the score of the answer after content-free prompts (contextual calibration, Zhao et al.
2021, equation 1 with a diagonal matrix; for texts the same difference is the domain conditional
PMI of Holtzman et al. 2021), so that a label that a model likes anyway gains nothing.

Results hold ids and figures, never a text. Cost: one pass over each different prompt; answers of
one token share it. Batches are sorted by length; a prompt that is too long keeps its end.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from detect.task_accuracy.answers import AccuracyRow
from detect.task_accuracy.prompts import FORMS, Question, ask
from inject.corpus.tokenizer import encode_offsets, encode_texts
from inject.examples.example import Example, Span
from train.completion import answer_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

BATCH_TOKENS = {"cpu": 2048}
BATCH_TOKENS_ELSEWHERE = 16384
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
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    examples: Sequence[Example],
    *,
    kinds: Mapping[str, str],
    batch_tokens: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[AccuracyRow]:
    """Return how a model answers each example, in the order given.

    Args:
        model: in any mode; it is put back into it.
        tokenizer: the model's own.
        examples: members and non-members.
        kinds: name of an example's dataset in the experiment → name of the dataset; a name that is
            missing stands for itself.
        batch_tokens: padded tokens of one batch; by default chosen for the device.
        progress: called with (tokens done, tokens in all).
    """
    asked = [ask(kinds.get(one.dataset, one.dataset), one.fields) for one in examples]
    requests = _Requests(limit=_context(model, tokenizer), start=_start_token(tokenizer))
    slots = _request(requests, [one for one in asked if one], tokenizer)
    device = next(model.parameters()).device.type
    limit = batch_tokens or BATCH_TOKENS.get(device, BATCH_TOKENS_ELSEWHERE)
    scores = _scored(model, requests, limit, progress or (lambda done, total: None))
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
    for (prompt, _), text, ids, offsets in zip(
        pairs, texts, encode_texts(tokenizer, texts), encode_offsets(tokenizer, texts), strict=True
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
    model: Any, requests: _Requests, batch_tokens: int, progress: Callable[[int, int], None]
) -> F64:
    """Return the log-probability of every slot, shape [slots]."""
    scores = np.zeros(requests.slots)
    sequences = sorted({*requests.targets, *requests.labels}, key=lambda ids: (-len(ids), ids))
    total, done, position = sum(map(len, sequences)), 0, 0
    longest = max((n for slots in requests.targets.values() for _, n in slots), default=0)
    rows = BATCH_LOGITS // ((1 + longest) * model.config.get_text_config().vocab_size)
    training = model.training
    model.eval()
    while position < len(sequences):
        # Sorted by falling length: the first of a batch is its longest.
        fitting = max(1, min(rows, batch_tokens // len(sequences[position])))
        batch = sequences[position : position + fitting]
        _score_batch(model, batch, requests, scores)
        position += len(batch)
        done += sum(map(len, batch))
        progress(done, total)
    model.train(training)
    return scores


def _score_batch(
    model: Any, batch: Sequence[tuple[int, ...]], requests: _Requests, scores: F64
) -> None:
    longest = len(batch[0])
    ids = np.zeros((len(batch), longest), np.int64)
    mask = np.zeros_like(ids)
    positions = np.zeros_like(ids)
    for row, sequence in enumerate(batch):
        # Padding stands to the left, so that what is scored stands at one end.
        first = longest - len(sequence)
        ids[row, first:] = sequence
        mask[row, first:] = 1
        positions[row, first:] = np.arange(len(sequence))
    kept = 1 + max(
        (scored for one in batch for _, scored in requests.targets.get(one, ())), default=0
    )
    device = next(model.parameters()).device
    known = inspect.signature(model.forward).parameters
    arrays = {"input_ids": ids, "attention_mask": mask}
    if "position_ids" in known:
        arrays["position_ids"] = positions
    inputs = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    few = {"logits_to_keep": kept} if "logits_to_keep" in known else {}
    logits = model(**inputs, **few, use_cache=False).logits[:, -kept:]
    log_probability = torch.log_softmax(logits.float(), dim=-1).cpu().double()
    for row, sequence in enumerate(batch):
        for token, slots in requests.labels.get(sequence, {}).items():
            scores[slots] = float(log_probability[row, -1, token])
        for slot, scored in requests.targets.get(sequence, ()):
            # The state before a token predicts it; the last state predicts what is not there.
            own = torch.tensor(sequence[-scored:])[:, None]
            scores[slot] = float(log_probability[row, -1 - scored : -1].gather(-1, own).sum())


def _context(model: Any, tokenizer: Any) -> int:
    limit = getattr(model.config, "max_position_embeddings", None)
    return int(limit or min(tokenizer.model_max_length, 1 << 20))


def _start_token(tokenizer: Any) -> list[int]:
    """Return the start token, where the tokenizer adds one by itself."""
    start = tokenizer.bos_token_id
    own = tokenizer("a", return_attention_mask=False)["input_ids"]
    return [start] if start is not None and own[:1] == [start] else []
