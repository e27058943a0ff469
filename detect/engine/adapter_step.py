"""The step that tunes a target: low-rank adapters trained on held-out rows of all datasets."""

from detect.asked_model import target_execution, target_settings
from detect.engine.open_target import open_target
from detect.policy import Adapters
from detect.settings import DetectSettings
from inject.examples.example import read_held_out
from inject.examples.parts import HELD_OUT
from inject.step import Step, StepContext
from train.models.model_node import ModelNode


def adapter_step(
    model: ModelNode, examples: Step, adapters: Adapters, detect: DetectSettings
) -> Step:
    """Train adapters of one model on the held-out rows of all datasets, with a fixed seed."""
    return Step(
        kind="adapter",
        label=f"held-out-{adapters}-{model.label}",
        function=f"{__name__}:build",
        settings={
            "adapters": adapters,
            "policy": detect.policy().record(),
            **target_settings(model, detect),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("torch", "transformers", "peft"),
        execution=target_execution(model, detect),
        reads={"examples": HELD_OUT},
    )


def build(context: StepContext) -> None:
    """Train the adapters, and save them alone."""
    from detect.engine.forward_pass import scoring_context
    from detect.engine.tuning import train_adapter

    policy = DetectSettings.model_validate(context.execution["detect"]).policy()
    target = open_target(context)
    train_adapter(
        context.out,
        target,
        [row.text for row in read_held_out(context.inputs["examples"])],
        policy,
        context=scoring_context(target, policy),
        adapters=context.settings["adapters"],
        progress=lambda done, total: context.report(done, total, unit="steps"),
    )
