"""Sizes of the tiny models that tests train."""

from typing import Any

from train.models.shapes import Shape


def tiny_shape(architecture: str = "llama", **sizes: Any) -> Shape:
    own = {"hidden": 32, "layers": 2, "heads": 2, "intermediate": 48, "context": 64}
    return Shape.model_validate({"architecture": architecture, "init_std": 0.1, **own, **sizes})
