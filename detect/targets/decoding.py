"""Ids of prompts → ids of continuations, in batches, regardless of batch and order.

Each prompt is read once for all its samples; keys and values are cached, prompts are padded on the
left and keep the positions of a single prompt. A sample is the inverse of the cumulative
distribution at a number that depends only on (key of the prompt, sample, position); so a short
continuation is also the beginning of a longer one. Logits are float32 in every model format,
probabilities float64.

Batches change logits in their last bits. This changes a sample only if its number is within such a
bit of the boundary between two tokens, about once in a million tokens in float32; under a 16-bit
format that happens more often. Cost: a pass over each prompt, then one token at a time for the
whole batch; finished rows leave the batch once they are half of it.

The library's own cache copies all keys and values at each token, which took half of the time of 20
continuations on a CPU. Here the memory for all tokens is allocated once, when a batch's rows copy
the cache of their prompts, and a step writes only its token. Layers that store anything other than
all keys and values (a sliding window, a state) keep the library's cache. Memory: rows × (tokens
read + room) keys and values per layer; the library's cache has the same size at the last token,
twice that while it copies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer

from detect.engine.batching import pad_sequences, run_in_batches
from detect.engine.target import Target
from detect.targets.text_model import Sampling
from inject.keyed import I64, Stream, unit, words

CACHED_TOKENS = {"cpu": 16_384}
"""Prompt and continuation tokens of one batch, by kind of device."""
CACHED_TOKENS_ELSEWHERE = 65_536

Stopped = Callable[[int, Sequence[int]], bool]
"""Function of a prompt's index and the ids written after it: whether the continuation ends."""


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One sample of one prompt."""

    prompt: int
    sample: int
    read: int
    """Number of prompt tokens to read: its last ones."""
    limit: int
    """Maximum tokens to write."""


def generate(
    target: Target,
    prompts: Sequence[I64],
    keys: Sequence[int],
    sampling: Sampling,
    *,
    batch_tokens: int | None = None,
    stopped: Stopped | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[list[int]]]:
    """Return the ids of `sampling.samples` continuations of each prompt, without their end token.

    Args:
        target: the model.
        prompts: one id or more each.
        keys: key of each prompt's random numbers, together with the seed.
        sampling: the sampling; the caller handles its `stop`.
        batch_tokens: tokens of one batch, including those to write; by default chosen for the
            device.
        stopped: called after every token; None stops only at an end token.
        progress: called with (samples done, samples in all).

    Raises:
        InputError: a token that the model lacks, or a single sequence that exceeds the memory.
    """
    for prompt in prompts:
        target.check_ids(prompt, "a prompt")
    rows = [
        _Row(prompt=index, sample=sample, read=read, limit=limit)
        for index, (read, limit) in enumerate(prompt_lengths(target, prompts, sampling.max_tokens))
        for sample in range(sampling.samples)
    ]
    rows.sort(key=lambda row: (-row.read - row.limit, row.prompt, row.sample))
    tokens = batch_tokens or CACHED_TOKENS.get(target.device.type, CACHED_TOKENS_ELSEWHERE)
    decoder = _Decoder(target, prompts, keys, sampling, stopped)
    continuations: list[list[list[int]]] = [[[] for _ in range(sampling.samples)] for _ in prompts]
    done = 0
    for batch, written in run_in_batches(
        target, rows, decoder.run, length=lambda row: row.read + row.limit, batch_tokens=tokens
    ):
        for row, ids in zip(batch, written, strict=True):
            continuations[row.prompt][row.sample] = ids
        done += len(batch)
        if progress is not None:
            progress(done, len(rows))
    return continuations


def end_tokens(target: Target) -> frozenset[int]:
    """Return the ids that end a text: those of the model's generation settings, and the
    tokenizer's."""
    ids: set[int | None] = {target.tokenizer.eos_token_id}
    for settings in (getattr(target.model, "generation_config", None), target.model.config):
        token_ids = getattr(settings, "eos_token_id", None)
        ids.update(token_ids if isinstance(token_ids, list | tuple) else [token_ids])
    return frozenset(int(token_id) for token_id in ids if token_id is not None)


class _Decoder:
    """Continues the rows of one batch after another."""

    def __init__(
        self,
        target: Target,
        prompts: Sequence[I64],
        keys: Sequence[int],
        sampling: Sampling,
        stopped: Stopped | None,
    ) -> None:
        self._target = target
        self._prompts = prompts
        self._keys = keys
        self._sampling = sampling
        self._stopped = stopped
        self._ends = end_tokens(target)
        self._positions = target.takes("position_ids")
        self._few = {"logits_to_keep": 1} if target.takes("logits_to_keep") else {}

    @torch.inference_mode()
    def run(self, rows: Sequence[_Row]) -> list[list[int]]:
        """Return the ids that each row writes."""
        reads = dict(sorted({row.prompt: row.read for row in rows}.items()))
        place = {prompt: index for index, prompt in enumerate(reads)}
        cut_prompts = [self._prompts[prompt][-read:] for prompt, read in reads.items()]
        padded, *_ = pad_sequences(self._target, cut_prompts, side="left", always_mask=True)
        out = self._target.model(**padded, **self._few, use_cache=True)
        cache = out.past_key_values
        prompt_rows = torch.tensor([place[row.prompt] for row in rows], device=self._target.device)
        logits = out.logits[prompt_rows, -1].float()
        mask = padded["attention_mask"][prompt_rows]
        take_rows(cache, prompt_rows, max(row.limit for row in rows))
        written: list[list[int]] = [[] for _ in rows]
        going = list(range(len(rows)))
        """Rows still in the cache, in its order."""
        active = [True] * len(rows)
        for position in range(max(row.limit for row in rows)):
            chosen = self._choose(logits, [rows[slot] for slot in going], position)
            for row, token in zip(going, chosen.tolist(), strict=True):
                if active[row]:
                    active[row] = self._extend(rows[row], written[row], token)
            left = [index for index, row in enumerate(going) if active[row]]
            if not left:
                break
            if 2 * len(left) <= len(going):
                index = torch.tensor(left, device=self._target.device)
                cache.batch_select_indices(index)
                mask, chosen = mask[index], chosen[index]
                going = [going[slot] for slot in left]
            mask = torch.cat([mask, mask.new_ones(len(going), 1)], dim=1)
            inputs: dict[str, Any] = {"input_ids": chosen[:, None], "attention_mask": mask}
            if self._positions:
                # A finished row that is still in the batch stays within the context.
                places = [rows[row].read + min(position, rows[row].limit - 1) for row in going]
                inputs["position_ids"] = torch.tensor(places, device=self._target.device)[:, None]
            out = self._target.model(**inputs, past_key_values=cache, use_cache=True)
            cache, logits = out.past_key_values, out.logits[:, -1].float()
        return written

    def _extend(self, row: _Row, ids: list[int], token: int) -> bool:
        """Append a token to a row; return whether the row continues."""
        if token in self._ends:
            return False
        ids.append(token)
        if self._stopped is not None and self._stopped(row.prompt, ids):
            return False
        return len(ids) < row.limit

    def _choose(self, logits: torch.Tensor, rows: Sequence[_Row], position: int) -> torch.Tensor:
        """Return the next token of each row, shape [rows]."""
        if self._sampling.temperature == 0:
            return logits.argmax(dim=-1)
        numbers = unit(
            words(
                self._sampling.seed,
                Stream.CONTINUATION,
                np.array([self._keys[row.prompt] for row in rows], dtype=np.uint64),
                np.array([row.sample for row in rows], dtype=np.uint64),
                position,
            )
        )
        return sample_tokens(logits, torch.from_numpy(numbers).to(logits.device), self._sampling)


def sample_tokens(logits: torch.Tensor, numbers: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Return the token at which the cumulative distribution passes a number in (0, 1).

    Args:
        logits: float32, shape [rows, vocabulary].
        numbers: float64, shape [rows].
        sampling: temperature above 0, then `top_k`, then `top_p`: the fewest likeliest tokens whose
            probabilities sum to it.
    """
    wide = torch.float32 if logits.device.type == "mps" else torch.float64
    probabilities = torch.softmax(logits.to(wide) / sampling.temperature, dim=-1)
    if sampling.top_k is not None and sampling.top_k < probabilities.shape[-1]:
        lowest = probabilities.topk(sampling.top_k, dim=-1).values[:, -1:]
        probabilities = probabilities.masked_fill(probabilities < lowest, 0.0)
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(dim=-1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p, 0.0)
        probabilities = torch.zeros_like(probabilities).scatter(-1, order, ordered)
    sums = probabilities.cumsum(dim=-1)
    edges = numbers.to(wide)[:, None] * sums[:, -1:]
    tokens = torch.searchsorted(sums, edges, right=True)[:, 0]
    vocabulary = probabilities.shape[-1]
    if bool((tokens == vocabulary).any()):
        # After rounding, a number may be at the very end: select the last token with any
        # probability.
        last = vocabulary - 1 - (probabilities.flip(-1) > 0).int().argmax(dim=-1)
        tokens = torch.minimum(tokens, last)
    return tokens


def prompt_lengths(
    target: Target, prompts: Sequence[I64], max_tokens: int
) -> list[tuple[int, int]]:
    """Return the numbers of tokens to read from each prompt, and of tokens to write after it.

    A prompt that is too long for the context is cut to its end: the context minus the continuation,
    but at least half of the context; then the continuation ends early.
    """
    if target.context is None:
        return [(len(ids), max_tokens) for ids in prompts]
    room = max(target.context - max_tokens, target.context // 2, 1)
    lengths = []
    for ids in prompts:
        read = min(len(ids), room)
        lengths.append((read, max(1, min(max_tokens, target.context - read))))
    return lengths


class RoomyLayer(DynamicLayer):
    """One layer's keys and values, [rows, heads, tokens, size], with room after the last token."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, room: int) -> None:
        """Allocate room for `room` further tokens after the given ones, which are copied."""
        super().__init__()
        self.lazy_initialization(keys, values)
        self._keys, self.keys = _with_room(keys, room)
        self._values, self.values = _with_room(values, room)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the tokens of a step; return all keys and values.

        Raises:
            ValueError: if there is no room for them.
        """
        start = self.keys.shape[-2]
        end = start + key_states.shape[-2]
        if end > self._keys.shape[-2]:
            raise ValueError(f"{end} tokens, and room for {self._keys.shape[-2]}")
        self._keys[..., start:end, :] = key_states
        self._values[..., start:end, :] = value_states
        self.keys, self.values = self._keys[..., :end, :], self._values[..., :end, :]
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep some rows, in the order given, and their room."""
        room = self._keys.shape[-2] - self.keys.shape[-2]
        selection = indices.to(self.keys.device)
        self._keys, self.keys = _with_room(self.keys[selection], room)
        self._values, self.values = _with_room(self.values[selection], room)


def take_rows(cache: Any, rows: torch.Tensor, room: int) -> None:
    """Replace a cache's rows by a selection, in the order given and possibly repeated, with room.

    Args:
        cache: cache of a pass over prompts; changed in place.
        rows: indices of the prompts, one per row.
        room: maximum further tokens of a row.
    """
    for index, layer in enumerate(cache.layers):
        # A subclass may store something else, or less.
        if type(layer) is DynamicLayer and layer.is_initialized:
            selection = rows.to(layer.keys.device)
            cache.layers[index] = RoomyLayer(layer.keys[selection], layer.values[selection], room)
        else:
            layer.batch_select_indices(rows)


def _with_room(states: torch.Tensor, room: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a buffer of states with room after them, and its filled part."""
    rows, heads, tokens, size = states.shape
    buffer = states.new_empty(rows, heads, tokens + room, size)
    filled = buffer[..., :tokens, :]
    filled.copy_(states)
    return buffer, filled
