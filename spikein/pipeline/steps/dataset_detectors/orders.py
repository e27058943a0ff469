"""The step of shuffled data sets: the log-likelihood of each order under one model."""

import numpy as np

from analysis.dataset_detectors.orders import read_orders, write_orders
from analysis.settings import AnalysisSettings
from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.settings import DetectSettings
from inject.examples.example import read_examples
from inject.examples.parts import UNSPLIT
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode


def orders_step(
    model: ModelNode, examples: Step, detect: DetectSettings, analysis: AnalysisSettings
) -> Step:
    """Read each data set, shard by shard, in its canonical order and in shuffles of it."""
    policy = detect.policy()
    drawn = {"shards": analysis.shards, "shuffles": analysis.shuffles, "seed": analysis.seed}

    def build(context: StepContext) -> None:
        from detect.engine.forward_pass import token_statistics

        orders = read_orders(read_examples(context.inputs["examples"].path), **drawn)
        statistics = token_statistics(
            open_target(model, context.inputs, detect),
            [one.text for one in orders],
            policy,
            batch_tokens=detect.batch_tokens,
            compile_mode=detect.compile,
            progress=lambda done, total: context.report(done, total, unit="tokens"),
        )
        sums = [float(np.sum(one.log_probability, dtype=np.float64)) for one in statistics]
        tokens = [len(one) for one in statistics]
        write_orders(context.out, orders, sums, tokens)
        write_cost(context.out, MeasuredCost(passes=len(orders), tokens_in=sum(tokens)))

    return Step(
        kind="orders",
        label=model.label,
        settings={
            **drawn,
            "policy": policy.record(),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("torch", "transformers"),
        code=(root(build),),
        reads={"examples": UNSPLIT},
        volatile=(COST_FILE,),
        build=build,
    )
