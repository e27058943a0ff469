"""The step in which a server scores the tokens of every row.

A server reads whole texts with its own tokenizer: the scoring policy does not apply.
"""

from collections.abc import Sequence

from detect.target_identity import MeasuredCost, write_cost
from detect.targets.asked_text_model import asked_text_model
from detect.targets.server import ServerTextModel
from detect.targets.text_model import TextModel
from detect.token_statistics import TokenStatistics, write_statistics
from detect.views import view_text
from inject.examples.example import read_examples, read_held_out
from inject.step import StepContext


def build(context: StepContext, text_model: TextModel | None = None) -> None:
    """Read every row in the step's view, and write the token statistics.

    Args:
        context: context of the step.
        text_model: queried instead of the step's model (see `asked_text_model`).
    """
    read = read_held_out if "rows" in context.settings else read_examples
    rows = read(context.inputs["examples"])
    texts = [view_text(context.settings["view"], row.text) for row in rows]
    write_statistics(
        context.out, [row.example_id for row in rows], read_served(context, text_model, texts)
    )


def read_served(
    context: StepContext,
    text_model: TextModel | None,
    texts: Sequence[str],
    *,
    before: Sequence[str] | None = None,
) -> list[TokenStatistics]:
    """Return the server's statistics of texts (`ServerTextModel.token_statistics`); record the
    cost.

    Raises:
        InputError: as `ServerTextModel.token_statistics`.
    """
    with asked_text_model(context, text_model) as model:
        if not isinstance(model, ServerTextModel):
            raise TypeError("a model that is on no server")
        statistics = model.token_statistics(
            texts,
            before=before,
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
    write_cost(context.out, MeasuredCost(passes=len(texts), tokens_in=sum(map(len, statistics))))
    return statistics
