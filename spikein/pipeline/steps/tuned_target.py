"""Steps of the tuned target: low-rank adapters trained on held-out rows, and what they change."""

from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.needs import Tuned
from detect.policy import Adapters
from detect.settings import DetectSettings
from detect.token_statistics import write_statistics
from detect.views import view_text
from inject.examples.example import read_examples, read_held_out
from inject.examples.parts import HELD_OUT, TEXTS
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode


def adapter_step(
    model: ModelNode, examples: Step, adapters: Adapters, detect: DetectSettings
) -> Step:
    """Train adapters of one model on the held-out rows of all datasets, with a fixed seed."""
    policy = detect.policy()

    def build(context: StepContext) -> None:
        from detect.engine.forward_pass import scoring_context
        from detect.engine.tuning import train_adapter

        rows = read_held_out(context.inputs["examples"].path)
        target = open_target(model, context.inputs, detect)
        train_adapter(
            context.out,
            target,
            [row.text for row in rows],
            policy,
            context=scoring_context(target, policy),
            adapters=adapters,
            progress=lambda done, total: context.report(done, total, unit="steps"),
        )

    return Step(
        kind="adapter",
        label=f"held-out-{adapters}-{model.label}",
        settings={
            "adapters": adapters,
            "policy": policy.record(),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("torch", "transformers", "peft"),
        code=(root(build),),
        reads={"examples": HELD_OUT},
        build=build,
    )


def tuned_statistics_step(
    model: ModelNode, examples: Step, need: Tuned, detect: DetectSettings
) -> Step:
    """Make the token statistics of every example under the model with its adapters."""
    policy = detect.policy()

    def build(context: StepContext) -> None:
        from detect.engine.forward_pass import token_statistics
        from detect.engine.tuning import with_adapter

        rows = read_examples(context.inputs["examples"].path)
        target = open_target(model, context.inputs, detect)
        statistics = token_statistics(
            with_adapter(target, context.inputs["adapter"].path),
            [view_text(need.view, row.text) for row in rows],
            policy,
            batch_tokens=detect.batch_tokens,
            compile_mode=detect.compile,
            progress=lambda done, total: context.report(done, total, unit="tokens"),
        )
        write_statistics(
            context.out,
            [row.example_id for row in rows],
            statistics,
            record={"tuned": need.name, **policy.record()},
        )
        scored = sum(map(len, statistics))
        write_cost(context.out, MeasuredCost(passes=len(rows), tokens_in=scored))

    return Step(
        kind="statistics",
        label=f"tuned-{need.name}-{model.label}",
        settings={
            "view": need.view,
            "policy": policy.record(),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={
            **model.inputs("model"),
            "examples": examples,
            "adapter": adapter_step(model, examples, need.adapters, detect),
        },
        libraries=("torch", "transformers", "peft"),
        code=(root(build),),
        reads={"examples": TEXTS},
        volatile=(COST_FILE,),
        build=build,
    )
