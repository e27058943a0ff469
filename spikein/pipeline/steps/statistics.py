"""How steps that are closures open the model that they ask."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from detect.settings import DetectSettings
from spikein.pipeline.steps.training import ModelNode

if TYPE_CHECKING:
    from detect.engine.target import Target


def open_target(model: ModelNode, inputs: Mapping[str, Any], detect: DetectSettings) -> "Target":
    """Load the model that a step asks, its input of the name `model`."""
    from detect.engine.target import load_target

    with model.unchanged():
        return load_target(
            model.locate(inputs, "model"),
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
            device=detect.device,
            dtype=model.dtype(detect.dtype),
            device_map=detect.device_map,
        )
