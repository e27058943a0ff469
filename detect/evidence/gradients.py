"""Gradients: the norms of each example's, under the model that is scored."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.asked_model import target_execution, target_settings
from detect.engine.measured_cost import COST_FILE
from detect.evidence.needs import Gradients
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.gradients.norms import NORMS_FILE, read_norms
from detect.settings import DetectSettings
from inject.examples.parts import TEXTS
from inject.step import Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


def gradients_step(model: "ModelNode", examples: Step, *, detect: DetectSettings) -> Step:
    """Make the gradient norms of every example under one model."""
    return Step(
        kind="gradients",
        label=model.label,
        function="detect.evidence_steps.gradients:build",
        settings={"policy": detect.policy().text_record(), **target_settings(model, detect)},
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("torch", "transformers"),
        reads={"examples": TEXTS},
        volatile=(COST_FILE,),
        execution=target_execution(model, detect),
    )


class _GradientProvider(Provider[Gradients]):
    leaves = ((NORMS_FILE, ()),)

    def inputs(self, need: Gradients, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"gradients": gradients_step(scored.model, sources.examples, detect=sources.detect)}

    def read(self, needs: Sequence[Gradients], work: Work) -> None:
        table = read_norms(work.inputs["gradients"])
        work.fields["gradients"] = [table[row.example_id] for row in work.rows]


GRADIENTS: Provider[Gradients] = _GradientProvider()
"""The need of gradients is met by backward passes of the model that is scored."""
