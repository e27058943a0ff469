"""The model that a step queries, opened from the step's JSON."""

from typing import TYPE_CHECKING

from detect.settings import DetectSettings
from inject.step import StepContext
from train.models.model_node import ModelNode

if TYPE_CHECKING:
    from detect.engine.target import Target


def open_target(context: StepContext) -> "Target":
    """Load the model that a step queries.

    Args:
        context: context of the step, made with `detect.target_identity.target_execution`.

    Raises:
        InputError: as `load_target`; or if a pretrained model has changed since the step was named.
    """
    from detect.engine.target import load_target

    node = ModelNode.given(context, "model")
    detect = DetectSettings.model_validate(context.execution["detect"])
    with node.unchanged():
        return load_target(
            node.path,
            revision=node.revision,
            trust_remote_code=node.trust_remote_code,
            device=detect.device,
            dtype=context.execution["format"],
            device_map=detect.device_map,
        )
