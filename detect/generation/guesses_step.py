"""The step in which a model guesses the masked words of every example.

A model is queried once for each selection of words and prompt. A knowledge filter is one more
model, queried before.
"""

from detect.generation.guesses import (
    GuessRequest,
    guess,
    known_parts,
    mask_text,
    read_guesses,
    write_guesses,
)
from detect.generation.word_statistics import read_words
from detect.target_identity import MeasuredCost, write_cost
from detect.targets.asked_text_model import asked_text_model
from detect.targets.text_model import TextModel, token_sums
from inject.examples.example import read_examples
from inject.step import StepContext


def build(context: StepContext, text_model: TextModel | None = None) -> None:
    """Mask parts of the texts, query the model for them, and write the answers.

    Args:
        context: context of the step.
        text_model: queried instead of the step's model (see `asked_text_model`).
    """
    request = GuessRequest(**context.settings["request"])
    rows = read_examples(context.inputs["examples"])
    ids = [row.example_id for row in rows]
    words = read_words(context.inputs["words"]) if "words" in context.inputs else {}
    masked = [
        mask_text(row.text, request, fields=row.fields, words=words.get(row.example_id, ()))
        for row in rows
    ]
    is_known = None
    if request.filtered:
        single, lists = (read_guesses(context.inputs[name]) for name in ("filter", "filter_100"))
        is_known = known_parts([single[key] for key in ids], [lists[key] for key in ids])
    with asked_text_model(context, text_model) as model:
        guesses = guess(
            model,
            masked,
            request,
            is_known=is_known,
            answers=None if text_model else context.unfinished,
            progress=lambda done, total: context.report(done, total, unit="prompts"),
        )
    write_guesses(context.out, ids, guesses)
    passes = sum(len(text.wanted) for text in guesses)
    write_cost(context.out, MeasuredCost(passes=passes, **token_sums(guesses)))
