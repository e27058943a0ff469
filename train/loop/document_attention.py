"""Attention within the documents of a packed window, without a mask of [windows, 1, T, T].

Positions that restart at 0 mark the documents; every window begins with one. transformers turns
them into a dense mask; here each document is a causal attention of its own, which also saves the
products between documents. Models whose attention is not simply causal (sliding windows) keep the
dense mask.
"""

from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from train.models.shapes import FAMILIES

NAME = "spikein_documents"
Bounds = list[list[tuple[int, int]]]
_known = WeakTensorKeyDictionary()


def supports_documents(model: PreTrainedModel) -> bool:
    """Return whether a model's attention is plain causal attention in every layer."""
    config = model.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return config.model_type in FAMILIES and kinds == {"full_attention"}


def use_document_attention(model: PreTrainedModel) -> None:
    """Let a model attend within documents, as its positions mark them."""
    AttentionInterface.register(NAME, document_attention)
    model.set_attn_implementation(NAME)


def document_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    position_ids: torch.Tensor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Return the attention of each document by itself, [windows, T, heads, width].

    Args:
        module: the attention layer.
        query: [windows, heads, T, width]; key and value likewise, with their own number of heads.
        key: as `query`.
        value: as `query`.
        attention_mask: None, since no mask is made for this function.
        position_ids: [windows, T], 0 at the start of each document; None for a single one.
        **options: scaling and dropout, as transformers' attention functions take them.
    """

    def attend(row: slice, span: slice) -> torch.Tensor:
        q, k, v = (states[row, :, span] for states in (query, key, value))
        attended: torch.Tensor = sdpa_attention_forward(module, q, k, v, None, **options)[0]
        return attended

    bounds = _bounds(position_ids, len(query))
    if all(len(spans) == 1 for spans in bounds):
        return attend(slice(None), slice(None)), None
    windows = [
        torch.cat([attend(slice(row, row + 1), slice(*span)) for span in spans], dim=1)
        for row, spans in enumerate(bounds)
    ]
    return torch.cat(windows), None


def _bounds(position_ids: torch.Tensor | None, windows: int) -> Bounds:
    """Return start and end of each document, per window; once per pass, not per layer."""
    if position_ids is None:
        return [[(0, 0)]] * windows
    if position_ids not in _known:
        length = position_ids.shape[1]
        starts: list[list[int]] = [[] for _ in range(len(position_ids))]
        for row, start in (position_ids == 0).nonzero().tolist():
            starts[row].append(start)
        _known[position_ids] = [list(zip(row, [*row[1:], length], strict=True)) for row in starts]
    bounds: Bounds = _known[position_ids]
    return bounds if len(bounds) == windows else bounds * windows
