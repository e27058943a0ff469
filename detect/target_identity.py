"""The model that a step queries: its part in the step's identity, and the cost of the queries.

The step's function opens it with `detect.engine.open_target`, or, if it writes texts, with
`detect.targets.asked_text_model`. It records its cost in its artifact's `cost.json`, from which
costs are summed up. The cost does not depend on the content, so `COST_FILE` is among the step's
volatile files and enters no digest. The time of a whole step is in its manifest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from detect.settings import DetectSettings
from inject.step import Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

AnyModel: TypeAlias = "ModelNode"
"""A model to query. Its module is not imported, so its code enters no step's identity."""

COST_FILE = "cost.json"


@dataclass(frozen=True, kw_only=True)
class MeasuredCost:
    """Cost of a step's queries to models."""

    passes: int | None = None
    """Texts that a model read, or prompts that it received."""
    tokens_in: int | None = None
    """Tokens scored, or tokens of prompts."""
    tokens_out: int | None = None
    """Tokens that a model wrote."""
    scoring_seconds: Mapping[str, float] = field(default_factory=dict)
    """For a scores step: seconds by detector, all its settings together."""


def write_cost(folder: Path, cost: MeasuredCost) -> None:
    """Write `cost.json` into a step's folder."""
    (folder / COST_FILE).write_text(json.dumps(asdict(cost), indent=1, sort_keys=True) + "\n")


def read_cost(folder: Path) -> MeasuredCost | None:
    """Return the cost that a step recorded; None if it recorded none."""
    path = folder / COST_FILE
    if not path.is_file():
        return None
    return MeasuredCost(**json.loads(path.read_text(encoding="utf-8")))


SERVER_FILE = "server.json"
"""A step's requests to a server, and notes on the replies; not part of the step's content."""


def asking_step(
    model: AnyModel,
    detect: DetectSettings,
    *,
    settings: Mapping[str, Any],
    inputs: Mapping[str, Step],
    libraries: Sequence[str] = (),
    code: Sequence[str] = (),
    **fields: Any,
) -> Step:
    """Return a step whose function queries a model.

    Args:
        model: the model to query.
        detect: settings for loading it.
        settings: further settings that determine the content.
        inputs: inputs other than the model.
        libraries: libraries whose versions count, in addition to those that determine the model's
            output.
        code: modules that the function finds by name, in addition to those that open the model.
        **fields: further fields of the step.
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


def target_execution(model: AnyModel, detect: DetectSettings) -> dict[str, Any]:
    """Return the execution settings of a step that opens a model with `open_target`."""
    return {
        **model.execution("model"),
        "detect": detect.model_dump(mode="json"),
        "format": model.format(detect.dtype),
    }


def target_settings(model: AnyModel, detect: DetectSettings) -> dict[str, Any]:
    """Return the part of the queried model that enters the step's settings."""
    return {"dtype": model.format_identity(detect.dtype), **model.settings("model")}


def model_libraries(model: AnyModel, detect: DetectSettings) -> tuple[str, ...]:
    """Return the libraries whose versions determine a model's output."""
    if model.served:
        return ()
    names = ["torch", "transformers"]
    if "adapter" in (model.identity or {}):
        names.append("peft")
    if detect.dtype in ("8bit", "4bit"):
        names.append("bitsandbytes")
    return tuple(names)
