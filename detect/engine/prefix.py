"""A prefix of texts: its ids, and its keys and values, which all texts of a batch share.

Ids are concatenated: start token (if texts have one), then each shot, followed by the
separator's ids. The join is never tokenised again, so a text has the same ids as in its plain pass.
The last id of the prefix starts every sequence and the rest is the cache, computed once: a text
costs its own tokens, and their attention to the prefix. `shared_prefix` compares the cached pass
with the plain one on a few ids. If they differ, or if layers do not store plain keys and values,
the model reads the whole prefix before every text, and a warning reports it.
"""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from detect.engine.encoding import encode
from detect.engine.target import Target
from detect.settings import ScoringPolicy
from inject.corpus.tokenizer import encode_texts

_log = logging.getLogger(__name__)
_PROBE_IDS = 4


class _SharedLayer(DynamicLayer):
    """Keys and values of one layer for one sequence, given to every sequence of a batch.

    A pass returns its additions without storing them, so that one object serves all batches.
    """

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the prefix's keys and values, followed by those of the texts."""
        rows = key_states.shape[0]
        keys = self.keys.expand(rows, -1, -1, -1)
        values = self.values.expand(rows, -1, -1, -1)
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)


class SharedPrefix:
    """A prefix that a model has read.

    Args:
        ids: all ids of the prefix.
        cache: keys and values of all but the last id; None if the model reads them again each time.
    """

    def __init__(self, ids: Sequence[int], cache: DynamicCache | None) -> None:
        self.ids = tuple(ids)
        self.cache = cache

    @property
    def repeated(self) -> tuple[int, ...]:
        """The ids that each sequence begins with."""
        return self.ids if self.cache is None else self.ids[-1:]

    @property
    def cached(self) -> int:
        """Number of ids in the cache."""
        return 0 if self.cache is None else len(self.ids) - 1


def start_ids(tokenizer: Any, policy: ScoringPolicy) -> list[int]:
    """Return the start token of a text under the policy, as a list of at most one id."""
    start = tokenizer.bos_token_id
    [encoded] = encode(tokenizer, ["a"], policy)
    return [int(start)] if start is not None and encoded.ids[:1].tolist() == [start] else []


def join_shots(
    tokenizer: Any, shots: Sequence[str], separator: str, policy: ScoringPolicy
) -> list[list[int]]:
    """Return the parts of a prefix: the start token, then each shot followed by a separator."""
    between, *encoded = (ids.tolist() for ids in encode_texts(tokenizer, [separator, *shots]))
    return [start_ids(tokenizer, policy), *([*ids, *between] for ids in encoded)]


@torch.inference_mode()
def shared_prefix(target: Target, ids: Sequence[int], *, cached: bool = True) -> SharedPrefix:
    """Return a prefix as the model has read it, once.

    Args:
        target: the model.
        ids: ids of the prefix, at least one.
        cached: False reads the prefix again before each text: the same statistics, slower.
    """
    whole = SharedPrefix(ids, None)
    if not cached or len(ids) < 2:
        return whole
    try:
        cached_prefix = SharedPrefix(ids, _read(target, ids[:-1]))
        reason = _difference(target, cached_prefix)
    except (TypeError, ValueError, RuntimeError, AttributeError, NotImplementedError) as error:
        reason = f"its keys and values cannot be kept ({error})"
    if reason is None:
        return cached_prefix
    _log.warning(
        "%s: %s; the prefix is read before every text, which is slower", target.name, reason
    )
    return whole


def batch_inputs(
    prefix: SharedPrefix, inputs: dict[str, torch.Tensor], takes_positions: bool
) -> dict[str, Any]:
    """Return a padded batch's inputs, shifted to follow the cached prefix.

    Args:
        prefix: the prefix.
        inputs: ids and mask, and, if the model accepts them, positions from 0.
        takes_positions: whether the model accepts positions.
    """
    if prefix.cache is None:
        return dict(inputs)
    mask = inputs["attention_mask"]
    before = mask.new_ones(mask.shape[0], prefix.cached)
    batch: dict[str, Any] = {
        "input_ids": inputs["input_ids"],
        "attention_mask": torch.cat([before, mask], dim=1),
        "past_key_values": prefix.cache,
    }
    if takes_positions:
        batch["position_ids"] = inputs["position_ids"] + prefix.cached
    return batch


def _read(target: Target, ids: Sequence[int]) -> DynamicCache:
    rows = torch.tensor([list(ids)], device=target.device)
    cache = target.model.base_model(input_ids=rows, use_cache=True).past_key_values
    if not all(type(layer) is DynamicLayer for layer in cache.layers):
        raise ValueError("its layers contain more, or less, than all keys and values")
    shared = DynamicCache()
    shared.layers = [_share_layer(layer) for layer in cache.layers]
    # No layer may be added to it.
    shared.layer_class_to_replicate = None
    return shared


def _share_layer(layer: DynamicLayer) -> _SharedLayer:
    shared = _SharedLayer()
    shared.lazy_initialization(layer.keys, layer.values)
    shared.keys, shared.values = layer.keys, layer.values
    return shared


def _difference(target: Target, prefix: SharedPrefix) -> str | None:
    """Return the difference between cached and plain pass on a few ids, in words; None if there is
    none."""
    few = [*prefix.ids[-1:], *prefix.ids[:_PROBE_IDS]]
    rows = torch.tensor([few, few], device=target.device)
    inputs = {
        "input_ids": rows,
        "attention_mask": torch.ones_like(rows),
        "position_ids": torch.arange(len(few), device=target.device).expand(2, -1),
    }
    takes = target.takes("position_ids")
    cached_hidden = target.hidden(**batch_inputs(prefix, inputs, takes)).float()
    whole = torch.tensor([[*prefix.ids[:-1], *few]], device=target.device)
    plain_hidden = target.hidden(input_ids=whole).float()[:, prefix.cached :]
    exact = next(target.model.parameters()).dtype == torch.float32
    tolerance = (1e-4 if exact else 5e-2) * (1 + float(plain_hidden.abs().max()))
    if float((cached_hidden - plain_hidden).abs().max()) > tolerance:
        return "its results with cached keys and values differ"
    return None
