"""The model that a step asks: what the step holds of it, and how its function opens it."""

from typing import TYPE_CHECKING, Any

from detect.settings import DetectSettings
from inject.step import StepContext
from train.models.model_node import ModelNode

if TYPE_CHECKING:
    from detect.engine.target import Target


def target_execution(
    model: ModelNode, detect: DetectSettings, name: str = "model"
) -> dict[str, Any]:
    """Return what the execution of a step holds that opens a model with `open_target`."""
    return {
        **model.execution(name),
        "detect": detect.model_dump(mode="json"),
        "format": model.format(detect.dtype),
    }


def target_settings(
    model: ModelNode, detect: DetectSettings, name: str = "model"
) -> dict[str, Any]:
    """Return what of the model that a step asks enters the step's settings."""
    return {"dtype": model.format_identity(detect.dtype), **model.settings(name)}


def model_libraries(model: ModelNode, detect: DetectSettings) -> tuple[str, ...]:
    """Return the libraries whose versions decide what a model says."""
    found = ["torch", "transformers"]
    if "adapter" in (model.identity or {}):
        found.append("peft")
    if detect.dtype in ("8bit", "4bit"):
        found.append("bitsandbytes")
    return tuple(found)


def open_target(context: StepContext, name: str = "model") -> "Target":
    """Load the model that a step asks.

    Args:
        context: of the step, made with `target_execution`.
        name: of the model among the step's inputs.

    Raises:
        InputError: as `load_target`; or a pretrained model has changed since the step was named.
    """
    from detect.engine.target import load_target

    given = ModelNode.given(context, name)
    detect = DetectSettings.model_validate(context.execution["detect"])
    with given.unchanged():
        return load_target(
            given.path,
            revision=given.revision,
            trust_remote_code=given.trust_remote_code,
            device=detect.device,
            dtype=context.execution["format"],
            device_map=detect.device_map,
        )
