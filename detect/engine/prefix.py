"""A prefix before texts: its ids, and its keys and values, which all texts of a batch share.

Ids are concatenated: start token (where texts have one), then each shot and the separator's ids
behind it. The join is never tokenised again, so the ids of the text are those of its plain pass.
The last id of the prefix starts every sequence and the rest of it is the cache, made once: a text
costs its own tokens, and the attention of these to the prefix. `shared_prefix` compares the cached
way with the plain one on a few ids; a model for which they differ, or whose layers do not hold
plain keys and values, reads the whole prefix before every text, which is said aloud.
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

    What a pass adds is handed back and not stored, so that one object serves all batches.
    """

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the prefix's keys and values with those of the texts behind them."""
        rows = key_states.shape[0]
        keys = self.keys.expand(rows, -1, -1, -1)
        values = self.values.expand(rows, -1, -1, -1)
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)


class SharedPrefix:
    """What a model has read before each text.

    Args:
        ids: all ids of the prefix.
        cache: keys and values of all but the last id; None where the model reads them anew.
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
    """Return the start token that a text gets under the policy, as a list of none or one."""
    start = tokenizer.bos_token_id
    [found] = encode(tokenizer, ["a"], policy)
    return [int(start)] if start is not None and found.ids[:1].tolist() == [start] else []


def join_shots(
    tokenizer: Any, shots: Sequence[str], separator: str, policy: ScoringPolicy
) -> list[list[int]]:
    """Return the parts of a prefix: the start token, then each shot with a separator behind it."""
    between, *encoded = (ids.tolist() for ids in encode_texts(tokenizer, [separator, *shots]))
    return [start_ids(tokenizer, policy), *([*ids, *between] for ids in encoded)]


@torch.inference_mode()
def shared_prefix(target: Target, ids: Sequence[int], *, cached: bool = True) -> SharedPrefix:
    """Return a prefix as the model has read it, once.

    Args:
        target: the model.
        ids: of the prefix, at least one.
        cached: False reads the prefix anew before each text: the same statistics, slower.
    """
    whole = SharedPrefix(ids, None)
    if not cached or len(ids) < 2:
        return whole
    try:
        found = SharedPrefix(ids, _read(target, ids[:-1]))
        reason = _difference(target, found)
    except (TypeError, ValueError, RuntimeError, AttributeError, NotImplementedError) as error:
        reason = f"its keys and values cannot be kept ({error})"
    if reason is None:
        return found
    _log.warning(
        "%s: %s; the prefix is read before every text, which is slower", target.name, reason
    )
    return whole


def batch_inputs(
    prefix: SharedPrefix, inputs: dict[str, torch.Tensor], takes_positions: bool
) -> dict[str, Any]:
    """Return a padded batch's inputs as they are behind the cached prefix.

    Args:
        prefix: what was read.
        inputs: ids and mask, and positions where the model takes them, from 0.
        takes_positions: whether the model takes positions.
    """
    if prefix.cache is None:
        return dict(inputs)
    mask = inputs["attention_mask"]
    before = mask.new_ones(mask.shape[0], prefix.cached)
    found: dict[str, Any] = {
        "input_ids": inputs["input_ids"],
        "attention_mask": torch.cat([before, mask], dim=1),
        "past_key_values": prefix.cache,
    }
    if takes_positions:
        found["position_ids"] = inputs["position_ids"] + prefix.cached
    return found


def _read(target: Target, ids: Sequence[int]) -> DynamicCache:
    rows = torch.tensor([list(ids)], device=target.device)
    cache = target.model.base_model(input_ids=rows, use_cache=True).past_key_values
    if not all(type(layer) is DynamicLayer for layer in cache.layers):
        raise ValueError("its layers hold more, or less, than all keys and values")
    shared = DynamicCache()
    shared.layers = [_shared(layer) for layer in cache.layers]
    # Nothing may add a layer to it.
    shared.layer_class_to_replicate = None
    return shared


def _shared(layer: DynamicLayer) -> _SharedLayer:
    found = _SharedLayer()
    found.lazy_initialization(layer.keys, layer.values)
    found.keys, found.values = layer.keys, layer.values
    return found


def _difference(target: Target, prefix: SharedPrefix) -> str | None:
    """Return how the cached way differs from the plain one on a few ids; None if it does not."""
    few = [*prefix.ids[-1:], *prefix.ids[:_PROBE_IDS]]
    rows = torch.tensor([few, few], device=target.device)
    inputs = {
        "input_ids": rows,
        "attention_mask": torch.ones_like(rows),
        "position_ids": torch.arange(len(few), device=target.device).expand(2, -1),
    }
    takes = target.takes("position_ids")
    found = target.hidden(**batch_inputs(prefix, inputs, takes)).float()
    whole = torch.tensor([[*prefix.ids[:-1], *few]], device=target.device)
    plain = target.hidden(input_ids=whole).float()[:, prefix.cached :]
    exact = next(target.model.parameters()).dtype == torch.float32
    tolerance = (1e-4 if exact else 5e-2) * (1 + float(plain.abs().max()))
    if float((found - plain).abs().max()) > tolerance:
        return "what it makes of cached keys and values differs"
    return None
