"""The model that a step asks: what of it enters the step's settings, execution and libraries.

Its function opens it with `detect.engine.open_target`.
"""

from typing import TYPE_CHECKING, Any

from detect.settings import DetectSettings

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


def target_execution(
    model: "ModelNode", detect: DetectSettings, name: str = "model"
) -> dict[str, Any]:
    """Return what the execution of a step holds that opens a model with `open_target`."""
    return {
        **model.execution(name),
        "detect": detect.model_dump(mode="json"),
        "format": model.format(detect.dtype),
    }


def target_settings(
    model: "ModelNode", detect: DetectSettings, name: str = "model"
) -> dict[str, Any]:
    """Return what of the model that a step asks enters the step's settings."""
    return {"dtype": model.format_identity(detect.dtype), **model.settings(name)}


def model_libraries(model: "ModelNode", detect: DetectSettings) -> tuple[str, ...]:
    """Return the libraries whose versions decide what a model says."""
    found = ["torch", "transformers"]
    if "adapter" in (model.identity or {}):
        found.append("peft")
    if detect.dtype in ("8bit", "4bit"):
        found.append("bitsandbytes")
    return tuple(found)
