"""Makes token statistics of a view."""

from detect.engine.measured_cost import MeasuredCost, write_cost
from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from detect.token_statistics import write_statistics
from detect.views import view_text
from inject.examples.example import read_examples, read_held_out
from inject.step import StepContext


def build(context: StepContext) -> None:
    """Make the token statistics of every row, and write them."""
    from detect.engine.forward_pass import token_statistics

    detect = DetectSettings.model_validate(context.execution["detect"])
    policy, view = detect.policy(), context.settings["view"]
    read = read_held_out if "rows" in context.settings else read_examples
    rows = read(context.inputs["examples"])
    target = open_target(context)
    statistics = token_statistics(
        target,
        [view_text(view, row.text) for row in rows],
        policy,
        batch_tokens=detect.batch_tokens,
        compile_mode=detect.compile,
        progress=lambda done, total: context.report(done, total, unit="tokens"),
    )
    write_statistics(
        context.out,
        [row.example_id for row in rows],
        statistics,
        record={"view": view, **policy.record()},
    )
    scored = sum(map(len, statistics))
    write_cost(context.out, MeasuredCost(passes=len(rows), tokens_in=scored))
