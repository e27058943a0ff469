"""Many sequences with shared beginnings, of which only the token that follows each is asked.

The sequences become a tree: what several of them begin with is read once, and its keys and values
are handed to every branch. Asked in all orders, four passages of L tokens are read 64 times instead
of 96, and what stands before them once instead of 24 times.

A model may keep its past in a way that the tree does not know. So the first call compares a few of
its sequences with the plain pass; where they differ, and where a model looks back over a limited
number of tokens, every sequence is read on its own, and a warning says so. Results are those of
sequences read on their own, to 1e-4 in float32.
"""

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from detect.engine.batching import default_batch_tokens, pad_sequences, run_in_batches
from detect.engine.target import Target

_log = logging.getLogger(__name__)

Ids = tuple[int, ...]
F32 = npt.NDArray[np.float32]

LEAST_SHARED = 8
"""Tokens that a branch must share: fewer cost more as a pass of their own than they save."""
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
_TOLERANCE_OF_HALF = 0.2


@dataclass(frozen=True, kw_only=True)
class Node:
    """A piece that one or more sequences have in common, after what stands before it."""

    ids: Ids
    slots: tuple[int, ...] = ()
    """The sequences that end here."""
    children: tuple["Node", ...] = ()

    @property
    def tokens(self) -> int:
        """How many tokens are read for it and all that follows."""
        return len(self.ids) + sum(child.tokens for child in self.children)


def prefix_tree(sequences: Sequence[Ids], *, least_shared: int = LEAST_SHARED) -> Node:
    """Return the tree of sequences; its root is what all of them begin with.

    Args:
        sequences: none empty; the slot of each is its index.
        least_shared: tokens that several sequences must share to share them.
    """
    return _node(sequences, tuple(range(len(sequences))), 0, least_shared)


def _node(sequences: Sequence[Ids], slots: tuple[int, ...], start: int, least: int) -> Node:
    """Return the node of sequences that are alike up to `start`."""
    first = sequences[slots[0]]
    stop = min(len(sequences[slot]) for slot in slots)
    end = start
    while end < stop and all(sequences[slot][end] == first[end] for slot in slots):
        end += 1
    ends = tuple(slot for slot in slots if len(sequences[slot]) == end)
    branches: dict[int, list[int]] = {}
    for slot in slots:
        if len(sequences[slot]) > end:
            branches.setdefault(sequences[slot][end], []).append(slot)
    children = tuple(_node(sequences, tuple(branch), end, least) for branch in branches.values())
    return Node(
        ids=first[start:end],
        slots=ends,
        children=tuple(one for child in children for one in _worthwhile(child, least)),
    )


def _worthwhile(node: Node, least: int) -> tuple[Node, ...]:
    """Return a node, or its children with its ids before theirs where it shares too few."""
    if len(node.ids) >= least or not node.children or node.slots:
        return (node,)
    return tuple(
        Node(ids=node.ids + child.ids, slots=child.slots, children=child.children)
        for child in node.children
    )


class _Branch(NamedTuple):
    """A node that is to be read, and the row of the past that it follows."""

    node: Node
    row: int


class _Past(NamedTuple):
    """What was read before a group of branches, a row for each node of one batch."""

    cache: Any
    mask: npt.NDArray[np.int64]
    """[rows, length]: which of the cached positions are tokens, not padding."""


@dataclass
class SharedPrefixes:
    """Reads sequences with shared beginnings under one target."""

    target: Target
    batch_tokens: int | None = None
    """New tokens of one batch, padding included; by default chosen for the device."""
    _usable: bool | None = field(default=None, init=False)

    @torch.inference_mode()
    def following(self, sequences: Sequence[Ids], tokens: Sequence[int]) -> F32:
        """Return the log-probability of each of `tokens` after each sequence, [sequences, tokens].

        Raises:
            InputError: one sequence alone exceeds the memory.
        """
        if self._usable is None:
            self._usable = self._try(sequences, tokens)
        return (
            self._through_tree(sequences, tokens) if self._usable else self.alone(sequences, tokens)
        )

    def tokens_read(self, sequences: Sequence[Ids]) -> int:
        """Return how many tokens `following` reads for sequences, without padding."""
        return prefix_tree(sequences).tokens if self._usable else sum(map(len, sequences))

    @torch.inference_mode()
    def alone(self, sequences: Sequence[Ids], tokens: Sequence[int]) -> F32:
        """Return the same with every sequence read on its own, from its beginning."""
        found = np.zeros((len(sequences), len(tokens)), np.float32)
        order = sorted(range(len(sequences)), key=lambda slot: -len(sequences[slot]))
        few = {"logits_to_keep": 1} if self.target.takes("logits_to_keep") else {}

        def forward(batch: Sequence[int]) -> torch.Tensor:
            # Padding stands to the left, so that every sequence ends at the last position.
            padded = pad_sequences(
                self.target, [sequences[slot] for slot in batch], side="left", always_mask=True
            )
            logits = self.target.model(**padded.inputs, **few, use_cache=False).logits[:, -1]
            return _log_probability(logits, tokens)

        for batch, rows in run_in_batches(
            self.target,
            order,
            forward,
            length=lambda slot: len(sequences[slot]),
            batch_tokens=self._batch_tokens,
        ):
            found[list(batch)] = rows.cpu().numpy()
        return found

    @property
    def _batch_tokens(self) -> int:
        return self.batch_tokens or default_batch_tokens(self.target)

    def _try(self, sequences: Sequence[Ids], tokens: Sequence[int]) -> bool:
        """Return whether the tree gives what sequences on their own do; else warn."""
        reason = _limited_history(self.target)
        if reason is None:
            # Few, but of different lengths after what they share, so that padding is tried, too.
            some = [sequences[0], sequences[len(sequences) // 2], sequences[-1]]
            try:
                difference = float(
                    np.abs(self._through_tree(some, tokens) - self.alone(some, tokens)).max()
                )
            except (
                TypeError,
                ValueError,
                AttributeError,
                NotImplementedError,
                IndexError,
            ) as error:
                reason = f"its past cannot be handed on ({type(error).__name__})"
            else:
                tolerance = _TOLERANCE.get(self.target.model.dtype, _TOLERANCE_OF_HALF)
                if not difference <= tolerance:
                    reason = f"its results with a past differ by {difference:.1g}"
        if reason is not None:
            _log.warning(
                "%s: %s; every prompt is read on its own, which is slower", self.target.name, reason
            )
        return reason is None

    def _through_tree(self, sequences: Sequence[Ids], tokens: Sequence[int]) -> F32:
        found = np.zeros((len(sequences), len(tokens)), np.float32)

        def keep(slots: Sequence[int], values: F32) -> None:
            found[list(slots)] = values

        root = prefix_tree(sequences)
        # Sequences that share nothing have no past to hand on.
        first = (root,) if root.ids else root.children
        self._descend([_Branch(node, 0) for node in first], None, tokens, keep)
        return found

    def _descend(
        self,
        branches: Sequence[_Branch],
        past: _Past | None,
        tokens: Sequence[int],
        keep: Callable[[Sequence[int], F32], None],
    ) -> None:
        """Read branches that follow one batch of the past, then all that follow them."""
        for batch, (read, rows) in run_in_batches(
            self.target,
            sorted(branches, key=lambda branch: -len(branch.node.ids)),
            lambda batch: self._read(batch, past, tokens),
            length=lambda branch: len(branch.node.ids),
            batch_tokens=self._batch_tokens,
        ):
            below = []
            for row, branch in enumerate(batch):
                if branch.node.slots:
                    keep(branch.node.slots, rows[row])
                below += [_Branch(child, row) for child in branch.node.children]
            if below:
                self._descend(below, read, tokens, keep)

    def _read(
        self, batch: Sequence[_Branch], past: _Past | None, tokens: Sequence[int]
    ) -> tuple[_Past, F32]:
        """Read one batch of branches; return the past with them, and what follows each."""
        target = self.target
        padded = pad_sequences(
            target, [branch.node.ids for branch in batch], side="left", always_mask=True
        )
        inputs = dict(padded.inputs)
        mask = inputs.pop("attention_mask").cpu().numpy()
        before = np.zeros((len(batch), 0), np.int64)
        cache = _empty_cache()
        if past is not None:
            rows = [branch.row for branch in batch]
            before, cache = past.mask[rows], _selected(past.cache, rows, target.device)
        mask = np.concatenate([before, mask], axis=1)
        inputs["attention_mask"] = torch.from_numpy(mask).to(target.device)
        if "position_ids" in inputs:
            known = torch.from_numpy(before.sum(axis=1)).to(target.device)
            inputs["position_ids"] = inputs["position_ids"] + known[:, None]
        few = {"logits_to_keep": 1} if target.takes("logits_to_keep") else {}
        out = target.model(**inputs, **few, past_key_values=cache, use_cache=True)
        found = _log_probability(out.logits[:, -1], tokens).cpu().numpy()
        return _Past(out.past_key_values, mask), found


def _log_probability(logits: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    return torch.log_softmax(logits.float(), dim=-1)[:, list(tokens)]


def _empty_cache() -> Any:
    from transformers import DynamicCache

    return DynamicCache()


def _selected(cache: Any, rows: Sequence[int], device: torch.device) -> Any:
    """Return some rows of a cache; the cache itself stays as it is."""
    selected = copy.copy(cache)
    selected.layers = [copy.copy(layer) for layer in cache.layers]
    selected.batch_select_indices(torch.tensor(rows, device=device))
    return selected


def _limited_history(target: Target) -> str | None:
    """Return why padding in the past would count, where a model looks back a limited way only."""
    config = target.model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if window and getattr(config, "use_sliding_window", True):
        return f"it looks back {window} positions at most"
    return None
