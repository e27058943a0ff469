"""Makes the gradient norms of each text under the target."""

from detect.engine.measured_cost import MeasuredCost, write_cost
from detect.engine.open_target import open_target
from detect.gradients.norms import write_norms
from detect.settings import DetectSettings
from inject.examples.example import read_examples
from inject.step import StepContext


def build(context: StepContext) -> None:
    """Make the norms of every example, and write them."""
    from detect.engine.gradients import gradient_norms

    rows = read_examples(context.inputs["examples"])
    norms = gradient_norms(
        open_target(context),
        [row.text for row in rows],
        DetectSettings.model_validate(context.execution["detect"]).policy(),
        progress=lambda done, total: context.report(done, total, unit="texts"),
    )
    write_norms(context.out, [row.example_id for row in rows], norms)
    read = [one.tokens_in for one in norms if one.tokens_in]
    write_cost(context.out, MeasuredCost(passes=len(read), tokens_in=sum(read)))
