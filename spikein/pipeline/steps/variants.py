"""How later steps read what copies can carry."""

from collections.abc import Mapping
from typing import Any

from spikein.pipeline.graph import Step


def variants_of(plan: Step) -> dict[str, Step]:
    """Return a plan's variants as an input of the steps that read them, where it has any."""
    return {"variants": plan.inputs["variants"]} if "variants" in plan.inputs else {}


def renditions_folder(inputs: Mapping[str, Any]) -> str | None:
    """Return the folder of the texts that copies can carry; None where all carry whole examples."""
    return str(inputs["variants"].path) if "variants" in inputs else None
