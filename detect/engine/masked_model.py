"""Masked language models, such as BERT: loaded from a folder or the hub for detectors.

Weights are read from safetensors only, in float32, and no model code is run.
"""

from dataclasses import dataclass
from typing import Any

import torch

from inject.errors import InputError, first_line
from train.device import default_device

_UNLIMITED = 1_000_000
_ALLOWED = "a model such as bert-base-uncased"
# The head of a pooled output, which is not used here.
_UNUSED = "pooler"


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedModel:
    """A masked language model in evaluation mode and its tokenizer."""

    name: str
    model: Any
    tokenizer: Any
    context: int
    """Maximum tokens of one text, special ones included."""
    device: torch.device


def is_masked_model(path_or_id: str) -> bool:
    """Return whether a model's configuration declares a masked language model.

    Raises:
        InputError: if the model does not exist.
    """
    from transformers import AutoConfig

    from train.models.pretrained import find_model

    config = AutoConfig.from_pretrained(find_model(path_or_id).path, local_files_only=True)
    return any("MaskedLM" in name for name in config.architectures or ())


def load_masked_model(path_or_id: str, *, device: str = "auto") -> MaskedModel:
    """Load a masked language model from a folder or from the hub.

    Raises:
        InputError: no such model, no safetensors, weights that do not fill it, or a tokenizer that
            does not report positions in the text.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from train.models.pretrained import find_model
    from train.process_state import isolated_randomness, plain_transformers

    source = find_model(path_or_id)
    try:
        with isolated_randomness(), plain_transformers():
            tokenizer = AutoTokenizer.from_pretrained(source.path, local_files_only=True)
            model, loading = AutoModelForMaskedLM.from_pretrained(
                source.path,
                dtype="float32",
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        raise InputError(
            f"not loadable as a masked language model ({first_line(error)})",
            where=path_or_id,
            allowed=_ALLOWED,
        ) from error
    missing = [key for key in sorted(loading["missing_keys"]) if _UNUSED not in key]
    if missing:
        raise InputError(
            f"its files lack {len(missing)} of the model's weights, the first is {missing[0]}",
            where=path_or_id,
            allowed=_ALLOWED,
        )
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            "its tokenizer reports no positions of tokens in the text", where=path_or_id
        )
    torch_device = torch.device(default_device().kind if device == "auto" else device)
    return make_masked_model(model.to(torch_device), tokenizer, name=path_or_id)


def make_masked_model(model: Any, tokenizer: Any, *, name: str) -> MaskedModel:
    """Return a masked model from a model and a tokenizer in memory."""
    limits = (
        getattr(model.config, "max_position_embeddings", None),
        getattr(tokenizer, "model_max_length", None),
    )
    return MaskedModel(
        name=name,
        model=model.eval(),
        tokenizer=tokenizer,
        context=min(limit for limit in (*limits, _UNLIMITED) if limit),
        device=next(model.parameters()).device,
    )
