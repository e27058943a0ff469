"""The one pass: texts → token statistics, whatever the batch, the padding or the order.

Windows of all texts are sorted by length and batched up to `batch_tokens` padded tokens; the
padding mask comes from lengths alone, so that no id (0 included) is ever taken for padding.
Valid positions go to the reduction over the vocabulary (`detect.engine.vocabulary_statistics`).
Running out of memory halves the batch and goes on. Results are in input order and independent of
batch size, padding side and order to 1e-4.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from detect.engine.encoding import encode, windows
from detect.engine.target import Target
from detect.engine.vocabulary_statistics import VocabularyReduction
from detect.policy import ScoringPolicy
from detect.settings import CompileMode
from detect.token_statistics import EMPTY_TEXT, ONE_TOKEN, TokenStatistics, unscored
from inject.errors import InputError

_log = logging.getLogger(__name__)

PaddingSide = Literal["right", "left"]
_BATCH_TOKENS = {"cpu": 2048}
_BATCH_TOKENS_ELSEWHERE = 16384


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """One window: its ids, and where the statistics of its scored tokens go."""

    ids: npt.NDArray[np.int64]
    first: int
    slot: int

    @property
    def scored(self) -> int:
        return len(self.ids) - self.first


class _Batch(NamedTuple):
    """Model inputs, and the indices of the valid positions in the flattened [batch · length]."""

    inputs: dict[str, torch.Tensor]
    flat: torch.Tensor
    targets: torch.Tensor
    slots: npt.NDArray[np.int64]


@torch.inference_mode()
def token_statistics(
    target: Target,
    texts: Sequence[str],
    policy: ScoringPolicy,
    *,
    batch_tokens: int | None = None,
    batch_size: int | None = None,
    padding_side: PaddingSide = "right",
    compile_mode: CompileMode = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> list[TokenStatistics]:
    """Return the statistics of each text, in the order given.

    Args:
        target: model and tokenizer.
        texts: any texts; an empty one, or one of a single token, gets a reason and no rows.
        policy: start token, first token, long texts.
        batch_tokens: padded tokens in one batch; by default chosen for the device.
        batch_size: sequences in one batch at most; no limit by default.
        padding_side: has no influence on the result.
        compile_mode: whether the reduction over the vocabulary is compiled.
        progress: called with (tokens scored, tokens in all) after each batch.

    Raises:
        InputError: a text beyond the context under `long=error`, a start token asked for that
            the tokenizer lacks, a token that the model lacks, or one sequence that alone exceeds
            the memory.
    """
    context = _context(target, policy)
    encoded = encode(target.tokenizer, texts, policy)
    pieces: list[_Piece] = []
    offsets = [0]
    scored_ids: list[npt.NDArray[np.int64]] = []
    for row, ids in enumerate(encoded):
        _check_ids(target, ids, row)
        slot = offsets[-1]
        found = windows(len(ids), context, policy, where=f"text {row + 1}") if texts[row] else []
        for window in found:
            pieces.append(
                _Piece(
                    ids=ids[window.start : window.stop],
                    first=window.first - window.start,
                    slot=slot + window.first - 1,
                )
            )
        stop = found[-1].stop if found else 1
        scored_ids.append(ids[1:stop])
        offsets.append(slot + max(0, stop - 1))
    reduction = VocabularyReduction(
        positions=offsets[-1],
        vocabulary=target.vocabulary,
        device=target.device,
        compile_mode=compile_mode,
    )
    _run(
        target,
        sorted(pieces, key=lambda piece: -len(piece.ids)),
        reduction,
        limit=batch_tokens or _BATCH_TOKENS.get(target.device.type, _BATCH_TOKENS_ELSEWHERE),
        # A model that transforms its logits makes them itself: one sequence at a time, so that
        # no [batch, length, vocabulary] array exists.
        most=batch_size if target.head is not None else 1,
        padding_side=padding_side,
        progress=progress or (lambda done, total: None),
    )
    reduced = reduction.finish(target.head)
    result = []
    for row, (start, stop) in enumerate(pairwise(offsets)):
        if start == stop:
            result.append(unscored(ONE_TOKEN if texts[row] else EMPTY_TEXT))
            continue
        mean = reduced.mean[start:stop]
        result.append(
            TokenStatistics(
                ids=scored_ids[row].astype(np.int32),
                log_probability=reduced.log_probability[start:stop],
                mean=mean,
                deviation=reduced.deviation[start:stop],
                entropy=-mean,
                rank=reduced.rank[start:stop],
            )
        )
    return result


def _check_ids(target: Target, ids: npt.NDArray[np.int64], row: int) -> None:
    """Refuse a text with a token that the model has no embedding for: a special one, spelled out.

    Raises:
        InputError: naming the text and the token.
    """
    beyond = ids[ids >= target.embedded]
    if len(beyond):
        token = target.tokenizer.convert_ids_to_tokens(int(beyond[0]))
        raise InputError(
            f"text {row + 1} holds the token {token!r} (id {int(beyond[0]):,}), and the model's "
            f"embedding has {target.embedded:,} rows",
            where=target.name,
            hint="Take the token out of the text.",
        )


def _context(target: Target, policy: ScoringPolicy) -> int | None:
    if policy.context is None:
        return target.context
    if target.context is not None and policy.context > target.context:
        raise InputError(
            f"a context of {policy.context} is more than this model's {target.context}",
            where=target.name,
            allowed=f"2 to {target.context}",
        )
    return policy.context


def _run(
    target: Target,
    pieces: list[_Piece],
    reduction: VocabularyReduction,
    *,
    limit: int,
    most: int | None,
    padding_side: PaddingSide,
    progress: Callable[[int, int], None],
) -> None:
    total = sum(piece.scored for piece in pieces)
    position = done = 0
    while position < len(pieces):
        # Sorted by falling length: the first of a batch is its longest.
        fitting = max(1, limit // len(pieces[position].ids))
        taken = pieces[position : position + min(fitting, most or fitting)]
        try:
            batch = _collate(taken, target, padding_side)
            rows = _forward(target, batch)
        except (RuntimeError, MemoryError) as error:
            if not _out_of_memory(error):
                raise
            limit = _halved(taken, target, error)
            continue
        if target.head is not None:
            reduction.push_hidden(target.head, rows, batch.targets, batch.slots)
        else:
            reduction.push_logits(rows, batch.targets, batch.slots)
        position += len(taken)
        done += sum(piece.scored for piece in taken)
        progress(done, total)


def _forward(target: Target, batch: _Batch) -> torch.Tensor:
    """Return hidden states, or logits, of the valid positions only."""
    if target.head is not None:
        return target.hidden(**batch.inputs).flatten(0, 1)[batch.flat]
    first, last = int(batch.flat[0]), int(batch.flat[-1])
    logits: torch.Tensor = target.model(**batch.inputs, use_cache=False).logits
    return logits[0, first : last + 1]


def _collate(pieces: Sequence[_Piece], target: Target, padding_side: PaddingSide) -> _Batch:
    length = max(len(piece.ids) for piece in pieces)
    ids = np.zeros((len(pieces), length), np.int64)
    mask = np.zeros_like(ids)
    positions = np.zeros_like(ids)
    flat, targets, slots = [], [], []
    for row, piece in enumerate(pieces):
        size = len(piece.ids)
        start = length - size if padding_side == "left" else 0
        ids[row, start : start + size] = piece.ids
        mask[row, start : start + size] = 1
        positions[row, start : start + size] = np.arange(size)
        # The state at i − 1 predicts token i.
        predicting = row * length + start + np.arange(piece.first, size) - 1
        flat.append(predicting)
        targets.append(piece.ids[piece.first :])
        slots.append(piece.slot + np.arange(piece.scored))
    arrays: dict[str, Any] = {"input_ids": ids}
    if not mask.all():
        arrays["attention_mask"] = mask
        if target.takes_positions:
            arrays["position_ids"] = positions
    return _Batch(
        inputs={name: torch.from_numpy(array).to(target.device) for name, array in arrays.items()},
        flat=torch.from_numpy(np.concatenate(flat)).to(target.device),
        targets=torch.from_numpy(np.concatenate(targets)).to(target.device),
        slots=np.concatenate(slots),
    )


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return any(part in text for part in ("out of memory", "not enough memory", "allocate memory"))


def _halved(taken: Sequence[_Piece], target: Target, error: BaseException) -> int:
    """Return the new limit in padded tokens after a batch did not fit the memory."""
    longest = len(taken[0].ids)
    if len(taken) == 1:
        raise InputError(
            f"one sequence of {longest} tokens alone exceeds the memory of {target.device}",
            where=target.name,
            hint="Give a smaller context, a 16-bit dtype, or another device.",
        ) from error
    if target.device.type == "cuda":
        torch.cuda.empty_cache()
    fewer = len(taken) // 2
    _log.warning("out of memory: going on with %d sequences a batch", fewer)
    return fewer * longest
