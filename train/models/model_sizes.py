"""Sizes of models that are not loaded: by hub id from a list, or by the `config.json` of a folder.

For plans without a network and without loading weights. A list of ids cannot be complete; an id
that is not listed has no sizes here, which a plan reports. No torch; only `block_count` and
`position_count` query the hub.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from inject.errors import Unreachable
from inject.step import Cost
from train.models.gguf import gguf_folder, is_gguf
from train.models.pretrained import find_model
from train.models.shapes import FAMILIES, Shape, load_shape, parameter_count
from train.settings import ModelSettings, TokenizerTraining

_LLAMA_ROWS = 32_000
_NEOX_ROWS = 50_304
_WEIGHT_BYTES = 4
_TRAINED_BYTES = 16
"""A parameter's weight, gradient and two moments of AdamW, in float32."""

PUBLISHED: Mapping[str, tuple[str, int]] = {
    "huggyllama/llama-7b": ("llama-7b", _LLAMA_ROWS),
    "meta-llama/Llama-2-7b-hf": ("llama2-7b", _LLAMA_ROWS),
    "meta-llama/Llama-2-7b-chat-hf": ("llama2-7b", _LLAMA_ROWS),
    "meta-llama/Llama-2-13b-hf": ("llama2-13b", _LLAMA_ROWS),
    "JackFram/llama-160m": ("llama-160m", _LLAMA_ROWS),
    "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T": ("llama-1b", _LLAMA_ROWS),
    "allenai/OLMo-1B-hf": ("olmo-1b", _NEOX_ROWS),
    "allenai/OLMo-7B-hf": ("olmo-7b", _NEOX_ROWS),
    "allenai/OLMo-2-0425-1B": ("olmo2-1b", 100_352),
    "allenai/OLMo-2-1124-7B": ("olmo2-7b", 100_352),
    "EleutherAI/pythia-160m": ("pythia-160m", _NEOX_ROWS),
    "EleutherAI/pythia-1b": ("pythia-1b", _NEOX_ROWS),
    "EleutherAI/pythia-2.8b": ("pythia-2.8b", _NEOX_ROWS),
    "EleutherAI/pythia-6.9b": ("pythia-6.9b", 50_432),
    "HuggingFaceTB/SmolLM2-135M": ("smollm2-135m", 49_152),
    "HuggingFaceTB/SmolLM2-135M-Instruct": ("smollm2-135m", 49_152),
    "Qwen/Qwen2-0.5B": ("qwen2-0.5b", 151_936),
    "Qwen/Qwen2-1.5B": ("qwen2-1.5b", 151_936),
    "Qwen/Qwen2-7B": ("qwen2-7b", 152_064),
}
"""Hub id: the name of its shape, and the rows of its embedding."""


class Sizes(NamedTuple):
    """Sizes that determine a model's costs."""

    shape: Shape
    vocabulary: int
    """Rows of the embedding."""
    source: str
    """Source of the sizes, for display."""


def known_sizes(model: ModelSettings) -> Sizes | None:
    """Return the sizes of an experiment's model, if they are known without loading it.

    None for a hub id that is not in `PUBLISHED`, a folder with an unsupported architecture, and a
    shape whose tokenizer must be loaded first.
    """
    if model.shape is not None:
        if not isinstance(model.tokenizer, TokenizerTraining):
            return None
        return Sizes(load_shape(model.shape), model.tokenizer.vocab_size, model.shape)
    name = model.pretrained or ""
    folder = gguf_folder(name) if is_gguf(name) else Path(name).expanduser()
    config = folder / "config.json"
    if config.is_file():
        return sizes_of_config(json.loads(config.read_text(encoding="utf-8")), source=name)
    if name.removesuffix("-deduped") not in PUBLISHED:
        return None
    file, vocabulary = PUBLISHED[name.removesuffix("-deduped")]
    return Sizes(load_shape(file), vocabulary, f"the published sizes ({file}.yaml)")


def sizes_of_config(config: Mapping[str, Any], *, source: str) -> Sizes | None:
    """Return the sizes in a `config.json` of transformers; None for other architectures.

    Args:
        config: content of the file.
        source: its source, for display.
    """
    family = FAMILIES.get(config.get("model_type", ""))
    if family is None:
        return None
    heads = config["num_attention_heads"]
    rotary = config.get("rope_parameters") or {}
    norm = {} if family.norm_name is None else {"norm_eps": config[family.norm_name]}
    shape = Shape(
        architecture=config["model_type"],
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads if family.grouped else None,
        intermediate=config["intermediate_size"],
        context=config["max_position_embeddings"],
        rope_theta=rotary.get("rope_theta") or config.get("rope_theta") or 10_000.0,
        tie_embeddings=config.get("tie_word_embeddings", False),
        **norm,
    )
    return Sizes(shape, config["vocab_size"], source)


def model_cost(model: ModelSettings, *, models: int = 1) -> Cost:
    """Estimate the memory and disk of a trained model, for any training data.

    Args:
        model: sizes of the trained model.
        models: number of kept models: the trained one, and intermediate ones.
    """
    sizes = known_sizes(model)
    if sizes is None:
        return Cost()
    parameters = parameter_count(sizes.shape, sizes.vocabulary)
    return Cost(
        memory_bytes=parameters * _TRAINED_BYTES, disk_bytes=parameters * _WEIGHT_BYTES * models
    )


_BLOCKS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
"""Keys of a `config.json` for the number of blocks: most models, GPT-2, others."""
_POSITIONS = ("max_position_embeddings", "n_positions")
"""Keys for the most positions: most models, GPT-2."""


def block_count(model: ModelSettings) -> int | None:
    """Return an experiment's number of blocks, from the model's shape or configuration.

    None if the hub cannot be reached, or if the configuration lacks it.

    Raises:
        InputError: as `load_shape` and `find_model`.
    """
    if model.pretrained is None:
        return None if model.shape is None else load_shape(model.shape).layers
    config = _configuration(model) or {}
    return next((config[key] for key in _BLOCKS if key in config), None)


def position_count(model: ModelSettings) -> int | None:
    """Return the most positions of an experiment's model; None if they are not known.

    A model whose hub cannot be reached has those of the published list.

    Raises:
        InputError: as `load_shape` and `find_model`.
    """
    if model.shape is not None:
        return load_shape(model.shape).context
    if config := _configuration(model):
        return next((config[key] for key in _POSITIONS if key in config), None)
    sizes = known_sizes(model)
    return None if sizes is None else sizes.shape.context


def _configuration(model: ModelSettings) -> dict[str, Any] | None:
    """Return the text model's part of a pretrained model's `config.json`; None if unknown."""
    try:
        folder = find_model(model.pretrained or "", revision=model.revision)
        text = (folder.path / "config.json").read_text(encoding="utf-8")
    except (Unreachable, FileNotFoundError):
        return None
    config: dict[str, Any] = json.loads(text)
    return config.get("text_config") or config
