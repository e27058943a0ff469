"""How many blocks an experiment's model has: by its shape, or by its saved configuration."""

import json

from inject.errors import Unreachable
from train.models.pretrained import find_model
from train.models.shapes import load_shape
from train.settings import ModelSettings

_BLOCKS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
"""Keys of a `config.json` for the number of blocks: most models, GPT-2, others."""


def block_count(model: ModelSettings) -> int | None:
    """Return how many blocks an experiment's model has, by its shape or its configuration.

    None where the hub cannot be reached, and for a configuration that does not say.

    Raises:
        InputError: as `load_shape` and `find_model`.
    """
    if model.pretrained is None:
        return None if model.shape is None else load_shape(model.shape).layers
    try:
        folder = find_model(model.pretrained, revision=model.revision)
    except Unreachable:
        return None
    config = json.loads((folder.path / "config.json").read_text(encoding="utf-8"))
    config = config.get("text_config") or config
    return next((config[key] for key in _BLOCKS if key in config), None)
