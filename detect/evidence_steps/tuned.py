"""Trains low-rank adapters of the target on held-out rows, and makes token statistics with them."""

from detect.engine.measured_cost import MeasuredCost, write_cost
from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from detect.token_statistics import write_statistics
from detect.views import view_text
from inject.examples.example import read_examples, read_held_out
from inject.step import StepContext


def train(context: StepContext) -> None:
    """Train the adapters, and write them."""
    from detect.engine.forward_pass import scoring_context
    from detect.engine.tuning import train_adapter

    policy = DetectSettings.model_validate(context.execution["detect"]).policy()
    rows = read_held_out(context.inputs["examples"])
    target = open_target(context)
    train_adapter(
        context.out,
        target,
        [row.text for row in rows],
        policy,
        context=scoring_context(target, policy),
        adapters=context.settings["adapters"],
        progress=lambda done, total: context.report(done, total, unit="steps"),
    )


def build(context: StepContext) -> None:
    """Make the token statistics of every example under the tuned target, and write them."""
    from detect.engine.forward_pass import token_statistics
    from detect.engine.tuning import with_adapter

    detect = DetectSettings.model_validate(context.execution["detect"])
    policy = detect.policy()
    rows = read_examples(context.inputs["examples"])
    target = open_target(context)
    statistics = token_statistics(
        with_adapter(target, context.inputs["adapter"]),
        [view_text(context.settings["view"], row.text) for row in rows],
        policy,
        batch_tokens=detect.batch_tokens,
        compile_mode=detect.compile,
        progress=lambda done, total: context.report(done, total, unit="tokens"),
    )
    write_statistics(
        context.out,
        [row.example_id for row in rows],
        statistics,
        record={"tuned": context.execution["need"], **policy.record()},
    )
    scored = sum(map(len, statistics))
    write_cost(context.out, MeasuredCost(passes=len(rows), tokens_in=scored))
