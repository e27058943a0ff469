"""The fields that every multiple-choice row has, and the reading of its gold letter."""

from collections.abc import Mapping, Sequence
from typing import Any

from inject.errors import InputError
from inject.examples.template import letter


def choice_fields(options: Sequence[str], gold: int | None) -> Mapping[str, Any]:
    """Return `options`, `answer_letter` and `answer_text`; the answers are empty without gold.

    Args:
        options: the texts of the options, without their letters, in the order shown.
        gold: index of the right one; None where the row does not say.
    """
    return {
        "options": list(options),
        "answer_letter": "" if gold is None else letter(gold),
        "answer_text": "" if gold is None else options[gold],
    }


def gold_index(given: str, labels: Sequence[str], *, where: str) -> int | None:
    """Return which label is the gold one; None for an empty one (a test set without answers).

    Raises:
        InputError: the label is none of the row's.
    """
    given = given.strip()
    if not given:
        return None
    if given not in labels:
        raise InputError(
            f"the gold label {given!r} is none of the row's options.",
            where=where,
            allowed=", ".join(labels),
        )
    return list(labels).index(given)
