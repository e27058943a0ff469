"""The step of shuffled datasets: the log-likelihood of each order under one model."""

import numpy as np

from detect.dataset_detectors.orders import read_orders, write_orders
from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from detect.target_identity import asking_step
from inject.examples.example import UNSPLIT, read_examples
from inject.step import Step, StepContext
from train.models.model_node import ModelNode


def orders_step(
    model: ModelNode,
    examples: Step,
    detect: DetectSettings,
    *,
    shards: int,
    shuffles: int,
    seed: int,
) -> Step:
    """Read each dataset, shard by shard, in its canonical order and in shuffles of it."""
    return asking_step(
        model,
        detect,
        kind="orders",
        label=model.label,
        function=f"{__name__}:build",
        settings={
            "shards": shards,
            "shuffles": shuffles,
            "seed": seed,
            "policy": detect.policy().record(),
        },
        inputs={"examples": examples},
        reads={"examples": UNSPLIT},
    )


def build(context: StepContext) -> None:
    """Let the model read every order, and write its log-likelihood."""
    from detect.engine.view_statistics import read_texts

    orders = read_orders(
        read_examples(context.inputs["examples"]),
        shards=context.settings["shards"],
        shuffles=context.settings["shuffles"],
        seed=context.settings["seed"],
    )
    statistics = read_texts(context, open_target(context), [order.text for order in orders])
    sums = [float(np.sum(row.log_probability, dtype=np.float64)) for row in statistics]
    write_orders(context.out, orders, sums, [len(row) for row in statistics])
