"""The pass over the vocabulary: hidden states → token statistics, chunk by chunk.

Valid positions (never padding) of many batches are gathered into blocks of `block` rows. For each
block the logits are computed `chunk` vocabulary columns at a time in one preallocated buffer and
immediately reduced to five numbers per row: the chunk's maximum m, Σe, Σe·d, Σe·d² with e = exp(l −
m), d = l − m, and the count of logits above the true one. The chunks' numbers are combined in
float64. Neither [positions, vocabulary] logits nor probabilities ever exist. The largest
log-probability is −log Σ exp(l − max), which is available anyway; its id is searched in a chunk
only if that chunk raises a row's maximum, about 5 times in 63 chunks. An inverse temperature β adds
Σw, Σw·d, Σw·d² with w = exp(β·d).

Cost at hidden 512 and vocabulary 32,000 on two cores: 1.04 times the forward pass that only
produces logits when the reduction is compiled, 1.10 in plain PyTorch (`scripts/bench/scoring.py`).
Both give the same numbers to 1e-4.
"""

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from detect.settings import CompileMode
from inject.keyed import I64

_log = logging.getLogger(__name__)

# Compiling takes 3 to 25 s and then saves about 2 ns per logit on one core pair.
_REPAYS_FROM_LOGITS = 10_000_000_000
# exp(-200) is 0 in float32: a logit this far below the maximum adds nothing to any sum, and the
# clamp prevents 0 · (−∞) if a model masks a token out.
_FAR_BELOW = -200.0
_LOWEST = -1e30

Reduce = Callable[[Tensor, Tensor], Tensor]


class ChunkSize(NamedTuple):
    """Rows and vocabulary columns of the one buffer of logits."""

    block: int
    chunk: int


class VocabularyStatistics(NamedTuple):
    """Statistics of all positions pushed, float32 or int32, shape [positions]."""

    log_probability: npt.NDArray[np.float32]
    mean: npt.NDArray[np.float32]
    deviation: npt.NDArray[np.float32]
    rank: npt.NDArray[np.int32]
    top_log_probability: npt.NDArray[np.float32]
    top_id: npt.NDArray[np.int32]
    tempered: npt.NDArray[np.float32]
    """Log-probability, mean and deviation at each inverse temperature, [βs, 3, positions]."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """The output embedding: logits = hidden · weightᵀ + bias."""

    weight: Tensor
    """[vocabulary, hidden]"""
    bias: Tensor | None = None
    """[vocabulary], or None."""


class VocabularyReduction:
    """Collects positions and reduces them over the vocabulary block by block.

    Args:
        positions: total number of positions to push; slots are 0 … positions − 1.
        vocabulary: number of logits per position.
        device: device of the logits.
        compile_mode: `auto` compiles if a C++ compiler is present and the work repays it.
        size: rows and columns of the buffer; by default chosen for the device.
        inverse_temperatures: β of further statistics.
    """

    def __init__(
        self,
        *,
        positions: int,
        vocabulary: int,
        device: torch.device,
        compile_mode: CompileMode = "auto",
        size: ChunkSize | None = None,
        inverse_temperatures: Sequence[float] = (),
    ) -> None:
        self._vocabulary = vocabulary
        self._device = device
        self._size = size or chunk_size(device, positions, vocabulary)
        self._betas = tuple(inverse_temperatures)
        self._reduce = _reducer(compile_mode, positions * vocabulary)
        self._buffer = torch.empty(self._size, dtype=torch.float32, device=device)
        self._waiting: list[tuple[Tensor, Tensor, I64]] = []
        self._rows_waiting = 0
        self._result = VocabularyStatistics(
            log_probability=np.full(positions, np.nan, np.float32),
            mean=np.full(positions, np.nan, np.float32),
            deviation=np.full(positions, np.nan, np.float32),
            rank=np.zeros(positions, np.int32),
            top_log_probability=np.full(positions, np.nan, np.float32),
            top_id=np.zeros(positions, np.int32),
            tempered=np.full((len(self._betas), 3, positions), np.nan, np.float32),
        )

    def push_hidden(self, head: Head, hidden: Tensor, targets: Tensor, slots: I64) -> None:
        """Take the hidden states [n, hidden] that predict `targets` [n]; reduce full blocks."""
        self._waiting.append((hidden, targets, slots))
        self._rows_waiting += len(slots)
        while self._rows_waiting >= self._size.block:
            self._reduce_waiting(head)

    def finish(self, head: Head | None) -> VocabularyStatistics:
        """Reduce the remaining positions and return all statistics."""
        while head is not None and self._rows_waiting:
            self._reduce_waiting(head)
        return self._result

    def push_logits(self, logits: Tensor, targets: Tensor, slots: I64) -> None:
        """Reduce logits [n, vocabulary] that the model itself produced."""
        for start in range(0, len(slots), self._size.block):
            stop = start + self._size.block
            rows, row_targets = logits[start:stop], targets[start:stop]
            true = rows.gather(1, row_targets[:, None])[:, 0].float()

            def fill(out: Tensor, first: int, last: int, rows: Tensor = rows) -> None:
                out.copy_(rows[:, first:last])

            self._store(self._block(fill, row_targets, true), slots[start:stop])

    def _reduce_waiting(self, head: Head) -> None:
        """Reduce one block of the waiting hidden states (the last one may be short)."""
        block = self._size.block
        hidden = torch.cat([item[0] for item in self._waiting])
        targets = torch.cat([item[1] for item in self._waiting])
        slots = np.concatenate([item[2] for item in self._waiting])
        left = len(slots) - block
        self._waiting = [(hidden[block:], targets[block:], slots[block:])] if left > 0 else []
        self._rows_waiting = max(0, left)
        hidden, targets, slots = hidden[:block], targets[:block], slots[:block]
        true = _true_logits(head, hidden, targets)

        def fill(out: Tensor, first: int, last: int) -> None:
            weight = head.weight[first:last].t()
            direct = hidden.dtype == torch.float32
            into = out if direct else None
            if head.bias is None:
                logits = torch.mm(hidden, weight, out=into)
            else:
                logits = torch.addmm(head.bias[first:last], hidden, weight, out=into)
            if not direct:
                out.copy_(logits)

        self._store(self._block(fill, targets, true), slots)

    def _block(
        self, fill: Callable[[Tensor, int, int], None], targets: Tensor, true: Tensor
    ) -> VocabularyStatistics:
        """Reduce one block over all chunks; `fill` writes logits of columns [first, last)."""
        rows, chunk = len(targets), self._size.chunk
        starts = range(0, self._vocabulary, chunk)
        # Compiled code requires one fixed shape; rows beyond the last position are discarded.
        height = rows if self._reduce is chunk_sums else self._size.block
        threshold = torch.nn.functional.pad(true, (0, height - rows))
        sums = torch.empty((len(starts), 5, height), dtype=torch.float32, device=self._device)
        tempered = torch.empty((len(self._betas), len(starts), 3, rows), device=self._device)
        own = torch.empty_like(true)
        top = _TopIds(rows, self._device)
        order = torch.argsort(targets)
        ends = torch.searchsorted(
            targets[order], torch.tensor([*starts, self._vocabulary], device=self._device)
        ).tolist()
        for index, first in enumerate(starts):
            last = min(first + chunk, self._vocabulary)
            fill(self._buffer[:rows, : last - first], first, last)
            self._buffer[:rows, last - first :] = -torch.inf
            sums[index] = self._reduce(self._buffer[:height], threshold)
            top.update(self._buffer, sums[index, 0, :rows], first)
            for beta, into in zip(self._betas, tempered, strict=True):
                into[index] = tempered_sums(self._buffer[:rows], sums[index, 0, :rows], beta)
            chunk_rows = order[ends[index] : ends[index + 1]]
            own[chunk_rows] = self._buffer[chunk_rows, targets[chunk_rows] - first]
        # The true logit is computed once more, in another order of summation, before its chunk; its
        # own column must not count as above it.
        above = sums[:, 4, :rows].sum(0) - (own > true).float()
        is_top = own >= top.maximum
        return _join(
            sums[:, :4, :rows],
            own,
            # If the two differ in the last bit, the rank follows the logit of the chunk.
            rank=torch.where(is_top, 1, above.clamp(min=1) + 1),
            top_id=torch.where(is_top, targets, top.ids),
            tempered=_tempered_in_float64(tempered, sums[:, 0, :rows], own, self._betas),
        )

    def _store(self, block: VocabularyStatistics, slots: I64) -> None:
        for into, values in zip(self._result, block, strict=True):
            into[..., slots] = values


def chunk_size(device: torch.device, positions: int, vocabulary: int) -> ChunkSize:
    """Return the buffer's shape: small enough for the caches of a CPU, larger elsewhere.

    A buffer of 2,048 × 512 reads the output embedding once for 2,048 positions and is 4 MiB.
    """
    block = min(2048, max(64, positions))
    return ChunkSize(block, min(vocabulary, 512 if device.type == "cpu" else 8192))


def chunk_sums(logits: Tensor, true: Tensor) -> Tensor:
    """Reduce logits [rows, columns] to [5, rows]: m, Σe, Σe·d, Σe·d², count above `true`."""
    maximum = logits.amax(1).clamp(min=_LOWEST)
    distance = (logits - maximum[:, None]).clamp(min=_FAR_BELOW)
    weight = distance.exp()
    first = weight * distance
    above = (logits > true[:, None]).sum(1, dtype=torch.float32)
    return torch.stack([maximum, weight.sum(1), first.sum(1), (first * distance).sum(1), above])


def tempered_sums(logits: Tensor, maximum: Tensor, beta: float) -> Tensor:
    """Reduce logits [rows, columns] to [3, rows]: Σw, Σw·d, Σw·d², with w = exp(β·d)."""
    distance = (logits - maximum[:, None]).clamp(min=_FAR_BELOW)
    weight = (distance * beta).exp()
    first = weight * distance
    return torch.stack([weight.sum(1), first.sum(1), (first * distance).sum(1)])


class _TopIds:
    """The column of each row's largest logit over the chunks seen, the first of equal ones."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self.maximum = torch.full((rows,), -torch.inf, device=device)
        self.ids = torch.zeros(rows, dtype=torch.int64, device=device)

    def update(self, logits: Tensor, maximum: Tensor, first: int) -> None:
        """Take a chunk that begins at column `first`, and its rows' maxima [rows]."""
        higher = maximum > self.maximum
        if logits.device.type == "cpu":
            # Few rows rise in a chunk: checking only those costs a twentieth of checking all.
            rows = higher.nonzero()[:, 0]
            self.ids[rows] = logits[rows].argmax(1) + first
        else:
            top_ids = logits[: len(maximum)].argmax(1) + first
            self.ids = torch.where(higher, top_ids, self.ids)
        self.maximum = torch.maximum(maximum, self.maximum)


def _join(
    sums: Tensor, own: Tensor, *, rank: Tensor, top_id: Tensor, tempered: Tensor
) -> VocabularyStatistics:
    """Join the chunks' sums [chunks, 4, rows] in float64."""
    joined = sums.cpu().double()
    maximum = joined[:, 0]
    log_total, mean, deviation = _moments(maximum, joined[:, 1:], 1.0)
    return VocabularyStatistics(
        log_probability=(own.cpu().double() - maximum.amax(0) - log_total).float().numpy(),
        mean=(mean - log_total).float().numpy(),
        deviation=deviation.float().numpy(),
        rank=rank.cpu().int().numpy(),
        top_log_probability=(-log_total).float().numpy(),
        top_id=top_id.cpu().int().numpy(),
        tempered=tempered.float().numpy(),
    )


def _moments(maximum: Tensor, sums: Tensor, beta: float) -> tuple[Tensor, Tensor, Tensor]:
    """Join chunks: their maxima [chunks, rows], and Σw, Σw·d, Σw·d² as [chunks, 3, rows].

    Returns:
        log Σ_v exp(β·d_v), mean and deviation of d = l − max under softmax(β · l), in float64,
        each of shape [rows].
    """
    zeroth, first, second = sums.unbind(1)
    shift = maximum - maximum.amax(0)
    weight = (beta * shift).exp()
    total = (weight * zeroth).sum(0)
    # Moving the origin of d from the chunk's maximum to the overall one: d' = d + shift.
    mean = (weight * (first + shift * zeroth)).sum(0) / total
    square = (weight * (second + 2 * shift * first + shift**2 * zeroth)).sum(0) / total
    return total.log(), mean, (square - mean**2).clamp(min=0).sqrt()


def _tempered_in_float64(
    sums: Tensor, maximum: Tensor, own: Tensor, betas: Sequence[float]
) -> Tensor:
    """Join the chunks' sums [βs, chunks, 3, rows] to log-probability, mean and deviation."""
    result = torch.empty((len(betas), 3, len(own)), dtype=torch.float64)
    maxima, true = maximum.cpu().double(), own.cpu().double()
    for into, part, beta in zip(result, sums, betas, strict=True):
        log_total, mean, deviation = _moments(maxima, part.cpu().double(), beta)
        into[0] = beta * (true - maxima.amax(0)) - log_total
        into[1] = beta * mean - log_total
        into[2] = beta * deviation
    return result


def _true_logits(head: Head, hidden: Tensor, targets: Tensor) -> Tensor:
    """Return the logits [n] of the targets, rounded as the model's own dtype would."""
    parts = []
    for rows, row_targets in zip(hidden.split(512), targets.split(512), strict=True):
        logit = (rows.float() * head.weight[row_targets].float()).sum(1)
        if head.bias is not None:
            logit = logit + head.bias[row_targets].float()
        parts.append(logit.to(hidden.dtype).float())
    return torch.cat(parts)


def _reducer(mode: CompileMode, logits: int) -> Reduce:
    if mode == "never" or (mode == "auto" and logits < _REPAYS_FROM_LOGITS):
        return chunk_sums
    return _compiled_or_plain()


@cache
def _compiled_or_plain() -> Reduce:
    """Return the compiled reduction, or the plain one with one warning per process."""
    if not has_compiler():
        _log.warning(
            "no C++ compiler found: token statistics use plain PyTorch (same numbers, slower)"
        )
        return chunk_sums
    compiled = torch.compile(chunk_sums, dynamic=False)
    failed: list[Literal[True]] = []

    def reduce(logits: Tensor, true: Tensor) -> Tensor:
        if not failed:
            try:
                with torch._inductor.config.patch(compile_threads=1):
                    return compiled(logits, true)
            except Exception as error:  # the compiler may fail in any way; the plain path cannot
                failed.append(True)
                _log.warning(
                    "compiling failed (%s): token statistics use plain PyTorch "
                    "(same numbers, slower)",
                    str(error).splitlines()[0] if str(error) else type(error).__name__,
                )
        return chunk_sums(logits, true)

    return reduce


def has_compiler() -> bool:
    """Return whether this machine has a C++ compiler."""
    names = (os.environ.get("CXX"), "g++", "clang++", "c++")
    return any(name is not None and shutil.which(name) for name in names)
