"""Trains low-rank adapters of the target on held-out rows, and makes token statistics with them."""

from detect.engine.open_target import open_target
from detect.evidence_steps.statistics import write_pass
from detect.settings import DetectSettings
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
    from detect.engine.tuning import with_adapter

    rows = read_examples(context.inputs["examples"])
    tuned = with_adapter(open_target(context), context.inputs["adapter"])
    write_pass(context, tuned, rows, record={"tuned": context.execution["need"]})
