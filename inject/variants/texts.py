"""Variants that are a change of the text: question only, without the answer, lower case."""

from inject.errors import InputError
from inject.examples.example import Example


def question_only(example: Example) -> str:
    """Return the text up to the end of the question.

    Raises:
        InputError: the dataset's template names no question.
    """
    return example.text[: _span_end(example, "question")]


def without_answer(example: Example) -> str:
    """Return the text without the answer; blanks that the cut leaves at the end go with it.

    Raises:
        InputError: the dataset's template names no answer.
    """
    _span_end(example, "answer")
    span = example.spans["answer"]
    return (example.text[: span.start] + example.text[span.stop :]).rstrip()


def lower_cased(example: Example) -> str:
    """Return the text in lower case."""
    return example.text.lower()


def _span_end(example: Example, part: str) -> int:
    if part not in example.spans:
        raise InputError(
            f"the variant `{'question' if part == 'question' else 'no_answer'}` needs to know "
            f"where the {part} stands, and row {example.source_id} has no such part",
            where=f"contaminants.{example.dataset}",
            allowed=f"datasets whose template names {{{part}}}; this one names "
            f"{', '.join(example.spans) or 'nothing'}",
            hint="Give the contaminant a `template` that names it, or leave the variant out.",
        )
    return example.spans[part].stop
