"""The step of what low-rank adapters change: token statistics of the tuned target."""

from detect.engine.adapter_step import adapter_step
from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.needs import Tuned
from detect.settings import DetectSettings
from detect.token_statistics import write_statistics
from detect.views import view_text
from inject.examples.example import read_examples
from inject.examples.parts import TEXTS
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode


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
