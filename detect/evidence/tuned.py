"""The tuned target: token statistics under low-rank adapters that held-out rows trained."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.asked_model import target_execution, target_settings
from detect.engine.measured_cost import COST_FILE
from detect.evidence.needs import Tuned
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.policy import Adapters
from detect.settings import DetectSettings
from inject.examples.parts import HELD_OUT, TEXTS
from inject.step import Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

_LIBRARIES = ("torch", "transformers", "peft")


def adapter_step(
    model: "ModelNode", examples: Step, adapters: Adapters, detect: DetectSettings
) -> Step:
    """Train adapters of one model on the held-out rows of all datasets, with a fixed seed."""
    return Step(
        kind="adapter",
        label=f"held-out-{adapters}-{model.label}",
        function="detect.evidence_steps.tuned:train",
        settings={
            "adapters": adapters,
            "policy": detect.policy().record(),
            **target_settings(model, detect),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=_LIBRARIES,
        reads={"examples": HELD_OUT},
        execution=target_execution(model, detect),
    )


def tuned_statistics_step(
    model: "ModelNode", examples: Step, need: Tuned, detect: DetectSettings
) -> Step:
    """Make the token statistics of every example under the model with its adapters."""
    return Step(
        kind="statistics",
        label=f"tuned-{need.name}-{model.label}",
        function="detect.evidence_steps.tuned:build",
        settings={
            "view": need.view,
            "policy": detect.policy().record(),
            **target_settings(model, detect),
        },
        inputs={
            **model.inputs("model"),
            "examples": examples,
            "adapter": adapter_step(model, examples, need.adapters, detect),
        },
        libraries=_LIBRARIES,
        reads={"examples": TEXTS},
        volatile=(COST_FILE,),
        execution={**target_execution(model, detect), "need": need.name},
    )


class _TunedProvider(Provider[Tuned]):
    hint = "Hold rows out (contaminants.held_out), such as 40 of each dataset."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.held_out

    def inputs(self, need: Tuned, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = tuned_statistics_step(scored.model, sources.examples, need, sources.detect)
        return {f"tuned-{need.name}": step}

    def read(self, needs: Sequence[Tuned], work: Work) -> None:
        work.fields["tuned"] = {need.name: work.statistics(f"tuned-{need.name}") for need in needs}


TUNED: Provider[Tuned] = _TunedProvider()
"""The need of a tuned target is met by adapters of the model that is scored."""
