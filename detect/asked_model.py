"""The model that a step asks: what of it enters the step's identity, and what the questions cost.

The step's function opens it with `detect.engine.open_target`, or as one that writes with
`detect.targets.asked_text_model`. It notes its cost in `cost.json` of its artifact, which whoever
sums up costs reads. What a step cost says nothing of what it made, so `COST_FILE` is among its
volatile files and enters no digest. The time of a whole step is in its manifest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detect.settings import DetectSettings
from inject.step import Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


COST_FILE = "cost.json"


@dataclass(frozen=True, kw_only=True)
class MeasuredCost:
    """What a step asked of models."""

    passes: int | None = None
    """Texts that a model read, or prompts that it was given."""
    tokens_in: int | None = None
    """Tokens that were scored, or of prompts."""
    tokens_out: int | None = None
    """Tokens that a model wrote."""
    scoring_seconds: Mapping[str, float] = field(default_factory=dict)
    """Of a step of scores: seconds by detector, all its settings together."""


def write_cost(folder: Path, cost: MeasuredCost) -> None:
    """Write `cost.json` into a step's folder."""
    (folder / COST_FILE).write_text(json.dumps(asdict(cost), indent=1, sort_keys=True) + "\n")


def read_cost(folder: Path) -> MeasuredCost | None:
    """Return what a step noted; None if it noted nothing."""
    path = folder / COST_FILE
    if not path.is_file():
        return None
    return MeasuredCost(**json.loads(path.read_text(encoding="utf-8")))


SERVER_FILE = "server.json"
"""What a step asked of a server, and notes on its replies; no part of what the step made."""


def asking_step(
    model: "ModelNode",
    detect: DetectSettings,
    *,
    settings: Mapping[str, Any],
    inputs: Mapping[str, Step],
    libraries: Sequence[str] = (),
    code: Sequence[str] = (),
    **fields: Any,
) -> Step:
    """Return a step whose function asks a model.

    Args:
        model: what is asked.
        detect: how it is loaded.
        settings: what else bears on the content.
        inputs: beside the model.
        libraries: whose versions count beside those that decide what the model says.
        code: that the function finds by name beside what opens the model.
        **fields: others of the step.
    """
    return Step(
        settings={**settings, **target_settings(model, detect)},
        inputs={**model.inputs("model"), **inputs},
        libraries=(*model_libraries(model, detect), *libraries),
        code=(*(("detect.targets.served_statistics",) if model.served else ()), *code),
        volatile=(COST_FILE, SERVER_FILE),
        execution=target_execution(model, detect),
        **fields,
    )


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
    if model.served:
        return ()
    names = ["torch", "transformers"]
    if "adapter" in (model.identity or {}):
        names.append("peft")
    if detect.dtype in ("8bit", "4bit"):
        names.append("bitsandbytes")
    return tuple(names)
