"""Many sequences with shared prefixes, of which only the last tokens are scored.

The sequences become a tree: a shared prefix is read once, and every branch receives its keys and
values. Four passages of L tokens in all orders are read 64 times instead of 96, and the text before
them once instead of 24 times; a prompt is read once for all its answers.

A model may store its past in a way that the tree does not support. So the first call compares a few
of its sequences with the plain pass. If they differ, or if the model's attention span is limited,
every sequence is read separately, and a warning reports it. Results equal those of separate
sequences, to 1e-4 in float32.
"""

import copy
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from transformers.cache_utils import DynamicCache

from detect.engine.batching import default_batch_tokens, pad_sequences, run_in_batches
from detect.engine.target import Target

_log = logging.getLogger(__name__)

Ids = tuple[int, ...]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]

LEAST_SHARED = 16
"""Fewest tokens that sharing must save: fewer cost more as a separate pass."""
BATCH_LOGITS = 1 << 26
"""Maximum logits of one batch: a quarter of a GB in float32."""
BATCH_PASTS = 8
"""Maximum positions of the past that a batch repeats, as a multiple of its own tokens."""
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
_TOLERANCE_OF_HALF = 0.2


@dataclass(frozen=True, kw_only=True)
class Node:
    """A span that one or more sequences share, after the spans that precede it."""

    ids: Ids
    slots: tuple[int, ...] = ()
    """The sequences that end here."""
    children: tuple["Node", ...] = ()

    @property
    def tokens(self) -> int:
        """Number of tokens read for this node and its descendants."""
        return len(self.ids) + sum(child.tokens for child in self.children)

    @property
    def through(self) -> tuple[int, ...]:
        """The sequences that end here or below."""
        return (*self.slots, *(slot for child in self.children for slot in child.through))


def prefix_tree(sequences: Sequence[Ids], *, least_shared: float = LEAST_SHARED) -> Node:
    """Return the tree of sequences; its root has no tokens.

    Args:
        sequences: none is empty; the slot of each is its index.
        least_shared: tokens that sharing a beginning must save.
    """
    if not sequences:
        return Node(ids=())
    root = _node(sequences, tuple(range(len(sequences))), 0, least_shared)
    return Node(ids=(), children=_keep_or_split(root, least_shared))


def common_start(sequences: Sequence[Ids]) -> int:
    """Return the number of leading ids that all sequences share."""
    # Any prefix of both the least and the greatest is a prefix of all between them.
    pairs = zip(min(sequences), max(sequences), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _node(sequences: Sequence[Ids], slots: tuple[int, ...], start: int, least: float) -> Node:
    """Return the node of sequences that agree up to `start`."""
    end = common_start([sequences[slot] for slot in slots])
    branches: dict[int, list[int]] = {}
    for slot in slots:
        if len(sequences[slot]) > end:
            branches.setdefault(sequences[slot][end], []).append(slot)
    children = (_node(sequences, tuple(branch), end, least) for branch in branches.values())
    return Node(
        ids=sequences[slots[0]][start:end],
        slots=tuple(slot for slot in slots if len(sequences[slot]) == end),
        children=tuple(node for child in children for node in _keep_or_split(child, least)),
    )


def _keep_or_split(node: Node, least: float) -> tuple[Node, ...]:
    """Return a node, or, if sharing saves too little, its children with its ids prepended."""
    if not node.children:
        return (node,)
    if node.ids and len(node.ids) * (len(node.children) - (not node.slots)) >= least:
        return (node,)
    parts = (Node(ids=(), slots=node.slots), *node.children) if node.slots else node.children
    return tuple(
        Node(ids=node.ids + part.ids, slots=part.slots, children=part.children) for part in parts
    )


_Scored = tuple[int, int, int]
"""A token that is scored: its sequence, the place in a node that predicts it (counted from the end,
1 being the last), and the token."""


class _Branch(NamedTuple):
    """A node to read, and the row of the past that it follows."""

    node: Node
    row: int
    end: int
    """Number of tokens up to its last."""
    scored: tuple[_Scored, ...]
    """Targets of its positions."""


class _Requests(NamedTuple):
    """Sequences, and the number of scored tokens of each."""

    sequences: Sequence[Ids]
    counts: Sequence[int]

    def tree(self, least_shared: float) -> Node:
        """Return the ids to read: the last token of a sequence is only predicted."""
        return prefix_tree([ids[:-1] for ids in self.sequences], least_shared=least_shared)

    def branches(self, node: Node, row: int, start: int) -> list[_Branch]:
        """Return the branches after a node that ends at `start`."""
        return [self._branch(child, row, start) for child in node.children]

    def _branch(self, node: Node, row: int, start: int) -> _Branch:
        end = start + len(node.ids)
        scored = (
            (slot, end - place, self.sequences[slot][place + 1])
            for slot in node.through
            for place in range(max(start, len(self.sequences[slot]) - 1 - self.counts[slot]), end)
        )
        return _Branch(node, row, end, tuple(scored))


_Past = tuple[Any, npt.NDArray[np.int64]]
"""The past of a group of branches, one row per node of one batch: the cache, and a mask of its
positions that are tokens, not padding, [rows, length]."""


@dataclass
class SharedPrefixes:
    """Reads sequences with shared beginnings under one target."""

    target: Target
    batch_tokens: int | None = None
    """New tokens of one batch, padding included; by default chosen for the device."""
    usable: bool | None = None
    """Whether the model's past can be reused; by default the first call tests it."""

    def following(self, sequences: Sequence[Ids], tokens: Sequence[int]) -> F32:
        """Return the log-probability of each of `tokens` after each sequence, [sequences, tokens].

        Raises:
            InputError: if a single sequence exceeds the memory.
        """
        whole = [(*ids, token) for ids in sequences for token in tokens]
        sums = self.sums(whole, [1] * len(whole))
        return sums.reshape(len(sequences), len(tokens)).astype(np.float32)

    @torch.inference_mode()
    def sums(
        self, sequences: Sequence[Ids], counts: Sequence[int], progress: Progress | None = None
    ) -> F64:
        """Return the log-probability of the last tokens of each sequence, [sequences].

        Args:
            sequences: of two or more tokens each.
            counts: number of scored tokens of each; less than its length.
            progress: called with (tokens read, tokens in all).

        Raises:
            InputError: if a single sequence exceeds the memory.
        """
        requests = _Requests(sequences, counts)
        if self.usable is None:
            self.usable = self._tree_agrees(requests)
        return self._sums(requests, self._least_shared, progress)

    def tokens_read(self, sequences: Sequence[Ids]) -> int:
        """Return the number of tokens that `following` reads for sequences, without padding."""
        return prefix_tree(sequences, least_shared=self._least_shared).tokens

    @property
    def _least_shared(self) -> float:
        return math.inf if self.usable is False else LEAST_SHARED

    def _tree_agrees(self, requests: _Requests) -> bool | None:
        """Return whether the tree and separate sequences agree; warn if they do not.

        None if the sequences share nothing.
        """
        nodes = requests.tree(LEAST_SHARED).children
        shared = sorted((node for node in nodes if node.children), key=lambda node: len(node.ids))
        if not shared:
            return None
        reason = _limited_history(self.target)
        if reason is None:
            # Few, but of different lengths before and after the shared part, which also tests
            # padding.
            slots = [node.through for node in (shared[0], shared[-1])]
            few = sorted({slot for own in slots for slot in own[:: (len(own) + 1) // 2]})
            some = _Requests(
                [requests.sequences[slot] for slot in few], [requests.counts[slot] for slot in few]
            )
            try:
                gaps = np.abs(self._sums(some, 1) - self._sums(some, math.inf))
                # Per token: a long answer adds one rounding error per token.
                difference = float((gaps / np.maximum(some.counts, 1)).max())
            except (
                TypeError,
                ValueError,
                AttributeError,
                NotImplementedError,
                IndexError,
            ) as error:
                reason = f"its past cannot be reused ({type(error).__name__})"
            else:
                tolerance = _TOLERANCE.get(self.target.model.dtype, _TOLERANCE_OF_HALF)
                if not difference <= tolerance:
                    reason = f"its results with a past differ by {difference:.1g}"
        if reason is not None:
            _log.warning(
                "%s: %s; every prompt is read separately, which is slower", self.target.name, reason
            )
        return reason is None

    def _sums(
        self, requests: _Requests, least_shared: float, progress: Progress | None = None
    ) -> F64:
        tree = requests.tree(least_shared)
        sums, done, total = np.zeros(len(requests.sequences)), 0, tree.tokens
        for batch, values in self._descend(requests, requests.branches(tree, 0, 0), None):
            slots = [slot for branch in batch for slot, _, _ in branch.scored]
            np.add.at(sums, slots, values)
            done += sum(len(branch.node.ids) for branch in batch)
            if progress is not None:
                progress(done, total)
        return sums

    def _descend(
        self, requests: _Requests, branches: Sequence[_Branch], past: _Past | None
    ) -> Iterator[tuple[Sequence[_Branch], F64]]:
        """Read branches that follow one batch of the past, then their descendants."""
        before = 0 if past is None else past[1].shape[1]
        logits = max(map(_count_logits, branches), default=1) * self.target.vocabulary
        for batch, (read, values) in run_in_batches(
            self.target,
            sorted(branches, key=lambda branch: -len(branch.node.ids)),
            lambda batch: self._read(batch, past),
            length=lambda branch: max(len(branch.node.ids), before // BATCH_PASTS),
            batch_tokens=self.batch_tokens or default_batch_tokens(self.target),
            max_sequences=max(1, BATCH_LOGITS // logits),
        ):
            yield batch, values
            below = [
                branch
                for row, above in enumerate(batch)
                for branch in requests.branches(above.node, row, above.end)
            ]
            if below:
                yield from self._descend(requests, below, read)

    def _read(self, batch: Sequence[_Branch], past: _Past | None) -> tuple[_Past | None, F64]:
        """Read one batch of branches; return the extended past, and their scored tokens."""
        target = self.target
        # Padding is on the left, so that every branch ends at the last position.
        padded, *_ = pad_sequences(
            target, [branch.node.ids for branch in batch], side="left", always_mask=True
        )
        inputs: dict[str, Any] = dict(padded)
        n_logits = max(map(_count_logits, batch))
        if target.takes("logits_to_keep"):
            inputs["logits_to_keep"] = n_logits
        read = None
        if past is None and not any(branch.node.children for branch in batch):
            out = target.model(**inputs, use_cache=False)
        else:
            mask = inputs["attention_mask"].cpu().numpy()
            before = np.zeros((len(batch), 0), np.int64)
            cache = DynamicCache()
            if past is not None:
                rows = [branch.row for branch in batch]
                cached, tokens = past
                before, cache = tokens[rows], _select_rows(cached, rows, target.device)
            mask = np.concatenate([before, mask], axis=1)
            inputs["attention_mask"] = torch.from_numpy(mask).to(target.device)
            if "position_ids" in inputs:
                offsets = torch.from_numpy(before.sum(axis=1)).to(target.device)
                inputs["position_ids"] = inputs["position_ids"] + offsets[:, None]
            out = target.model(**inputs, past_key_values=cache, use_cache=True)
            read = out.past_key_values, mask
        log_probability = torch.log_softmax(out.logits[:, -n_logits:].float(), dim=-1)
        picked = [
            (row, n_logits - back, token)
            for row, branch in enumerate(batch)
            for _, back, token in branch.scored
        ]
        places = tuple(torch.tensor(picked, dtype=torch.long).reshape(-1, 3).T)
        return read, log_probability[places].double().cpu().numpy()


def _count_logits(branch: _Branch) -> int:
    """Return the number of a branch's last positions that predict scored tokens; at least one."""
    return max((back for _, back, _ in branch.scored), default=1)


def _select_rows(cache: Any, rows: Sequence[int], device: torch.device) -> Any:
    """Return some rows of a cache; the cache itself is unchanged."""
    selected = copy.copy(cache)
    selected.layers = [copy.copy(layer) for layer in cache.layers]
    selected.batch_select_indices(torch.tensor(rows, device=device))
    return selected


def _limited_history(target: Target) -> str | None:
    """Return the reason why padding in the past would count: the model's attention span is
    limited."""
    config = target.model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if window and getattr(config, "use_sliding_window", True):
        return f"its attention spans at most {window} positions"
    return None
