"""Sequences of ids → batches that fit the memory → inputs of a model.

Used by both passes over a model: token statistics, and the tree of prompts and answers. Sequences
are sorted by descending length, so the first of a batch is its longest, and a batch has at most
`batch_tokens` padded tokens. The padding mask depends only on lengths, so no id (0 included) is
ever mistaken for padding. Running out of memory halves the batch and continues.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from detect.engine.target import Target
from inject.errors import InputError
from inject.keyed import I64

_log = logging.getLogger(__name__)

PaddingSide = Literal["right", "left"]
_BATCH_TOKENS = {"cpu": 2048}
_BATCH_TOKENS_ELSEWHERE = 16384

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_batch_tokens(target: Target) -> int:
    """Return the number of padded tokens per batch that suits the target's device."""
    return _BATCH_TOKENS.get(target.device.type, _BATCH_TOKENS_ELSEWHERE)


def run_in_batches(
    target: Target,
    items: Sequence[Item],
    forward: Callable[[Sequence[Item]], Result],
    *,
    length: Callable[[Item], int],
    batch_tokens: int,
    max_sequences: int | None = None,
) -> Iterator[tuple[Sequence[Item], Result]]:
    """Yield each batch with the model's result.

    Args:
        target: names the model and its device in messages.
        items: sorted by falling length.
        forward: one pass of the model over a batch; called again with half of it if the memory does
            not suffice.
        length: number of tokens of an item.
        batch_tokens: padded tokens in one batch.
        max_sequences: maximum sequences in one batch; no limit by default. Always one if the
            model's numbers depend on the rest of the batch.

    Raises:
        InputError: if a single sequence exceeds the memory.
    """
    position = 0
    if target.depends_on_batch:
        max_sequences = 1
    while position < len(items):
        fitting = max(1, batch_tokens // length(items[position]))
        batch = items[position : position + min(fitting, max_sequences or fitting)]
        try:
            result = forward(batch)
        except (RuntimeError, MemoryError) as error:
            if not _out_of_memory(error):
                raise
            batch_tokens = _halve_limit(len(batch), length(batch[0]), target, error)
            continue
        yield batch, result
        position += len(batch)


def pad_sequences(
    target: Target, sequences: Sequence[Any], *, side: PaddingSide, always_mask: bool = False
) -> tuple[dict[str, torch.Tensor], I64, int]:
    """Return sequences of ids as the inputs of one pass.

    Args:
        target: the model.
        sequences: of ids.
        side: side of the padding.
        always_mask: give the model a mask even if nothing is padded. Without one it may use another
            kernel, whose results differ in the last bits.

    Returns:
        Keyword arguments of the model, on its device; the start of each sequence in its row; and
        the length of every row, padding included.
    """
    length = max(map(len, sequences))
    ids = np.zeros((len(sequences), length), np.int64)
    mask = np.zeros_like(ids)
    positions = np.zeros_like(ids)
    starts = np.zeros(len(sequences), np.int64)
    for row, sequence in enumerate(sequences):
        size = len(sequence)
        start = length - size if side == "left" else 0
        ids[row, start : start + size] = sequence
        mask[row, start : start + size] = 1
        positions[row, start : start + size] = np.arange(size)
        starts[row] = start
    arrays = {"input_ids": ids}
    if always_mask or not mask.all():
        arrays["attention_mask"] = mask
        if target.takes("position_ids"):
            arrays["position_ids"] = positions
    inputs = {name: torch.from_numpy(array).to(target.device) for name, array in arrays.items()}
    return inputs, starts, length


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return any(part in text for part in ("out of memory", "not enough memory", "allocate memory"))


def _halve_limit(sequences: int, longest: int, target: Target, error: BaseException) -> int:
    """Return the new limit in padded tokens after a batch did not fit the memory."""
    if sequences == 1:
        raise InputError(
            f"a single sequence of {longest} tokens exceeds the memory of {target.device}",
            where=target.name,
            hint="Give a smaller context, a 16-bit dtype, or another device.",
        ) from error
    if target.device.type == "cuda":
        torch.cuda.empty_cache()
    fewer = sequences // 2
    _log.warning("out of memory: continuing with %d sequences per batch", fewer)
    return fewer * longest
