"""The steps in which a model continues the beginnings of texts: of all, or of those to forget.

The continuations are an artifact, so that all detectors of continuations, also new ones, read them.
"""

from collections.abc import Sequence

from detect.generation.continuations import (
    Continued,
    continue_texts,
    read_request,
    write_continuations,
)
from detect.target_identity import MeasuredCost, write_cost
from detect.targets.asked_text_model import asked_text_model
from detect.targets.text_model import TextModel, token_sums
from inject.examples.example import Example, read_examples
from inject.examples.forget_set import forgotten_rows
from inject.step import StepContext


def build(context: StepContext, text_model: TextModel | None = None) -> None:
    """Let the model continue every beginning, and record the cost.

    Args:
        context: context of the step.
        text_model: queried instead of the step's model (see `asked_text_model`).
    """
    continued = _continue(context, read_examples(context.inputs["examples"]), text_model)
    passes = sum(len(text.texts) for text in continued)
    write_cost(context.out, MeasuredCost(passes=passes, **token_sums(continued)))


def build_forgotten(context: StepContext) -> None:
    """Let the model continue the beginnings of the forgotten texts."""
    pool = read_examples(context.inputs["examples"])
    _continue(context, forgotten_rows(pool, read_examples(context.inputs["membership"])))


def _continue(
    context: StepContext, rows: Sequence[Example], text_model: TextModel | None = None
) -> list[Continued]:
    with asked_text_model(context, text_model) as model:
        continued = continue_texts(
            model,
            [row.text for row in rows],
            read_request(context.settings["request"]),
            answers=None if text_model else context.unfinished,
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
    write_continuations(context.out, [row.example_id for row in rows], continued)
    return continued
