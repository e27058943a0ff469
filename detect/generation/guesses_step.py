"""The step in which a model guesses the masked words of every example.

A model is queried once for each selection of words and prompt. A knowledge filter is one more
model, queried before.
"""

from detect.asked_model import MeasuredCost, write_cost
from detect.generation.guesses import (
    GuessRequest,
    guess,
    known_parts,
    mask_text,
    read_guesses,
    write_guesses,
)
from detect.generation.word_statistics import read_words
from detect.targets.asked_text_model import asked_text_model
from detect.targets.text_model import TextModel
from inject.examples.example import read_examples
from inject.step import StepContext


def build(context: StepContext, asked: TextModel | None = None) -> None:
    """Mask parts of the texts, query the model for them, and write the answers.

    Args:
        context: context of the step.
        asked: queried instead of the step's model (see `asked_text_model`).
    """
    request = GuessRequest(**context.settings["request"])
    rows = read_examples(context.inputs["examples"])
    ids = [row.example_id for row in rows]
    words = read_words(context.inputs["words"]) if "words" in context.inputs else {}
    masked = [
        mask_text(row.text, request, fields=row.fields, words=words.get(row.example_id, ()))
        for row in rows
    ]
    known = None
    if request.filtered:
        single, lists = (read_guesses(context.inputs[name]) for name in ("filter", "filter_100"))
        known = known_parts([single[one] for one in ids], [lists[one] for one in ids])
    with asked_text_model(context, asked) as model:
        found = guess(
            model,
            masked,
            request,
            known=known,
            answers=None if asked else context.unfinished,
            progress=lambda done, total: context.report(done, total, unit="prompts"),
        )
    write_guesses(context.out, ids, found)
    write_cost(
        context.out,
        MeasuredCost(
            passes=sum(len(one.wanted) for one in found),
            tokens_in=sum(one.tokens_in for one in found),
            tokens_out=sum(one.tokens_out for one in found),
        ),
    )
