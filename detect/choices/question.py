"""One multiple-choice question a passage: the verbatim text among three paraphrases.

Duarte et al. 2024 (DE-COP), section 4 and appendix C. A question is asked in all 24 orders of its
four options, because models favour some labels whatever stands there. The wording is that of the
paper's tables 9 and 10; where a text has no title, the question names none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

LABELS = ("A", "B", "C", "D")
"""What the options are called, in the order in which they stand."""
ORDERS = tuple(permutations(range(len(LABELS))))
"""Every order: which option stands at each label. Option 0 is the verbatim passage."""
RIGHT = tuple(order.index(0) for order in ORDERS)
"""The place of the verbatim passage in each order."""

INSTRUCTION = (
    "You are entering a multiple choice questions exam. You should directly answer each question "
    "by choosing the correct option. Be concise and straight to the point in your answer. Output "
    "only the letter corresponding to the correct answer."
)
TOO_FEW = "no three paraphrases to choose from"
SAME = "two of its four options are the same text"
EMPTY = "one of its four options is empty"


@dataclass(frozen=True, kw_only=True)
class ChoiceQuestion:
    """A passage, its paraphrases, and the document that it is of."""

    options: tuple[str, ...]
    """The verbatim passage, then three paraphrases."""
    title: str = ""
    author: str = ""

    def prompt(self, order: Sequence[int]) -> str:
        """Return the question with its options in one order, up to the answer.

        Args:
            order: which option stands at each label.
        """
        lines = [f"{label}. {self.options[at]}" for label, at in zip(LABELS, order, strict=True)]
        return "\n".join(
            [
                f"{INSTRUCTION}\n",
                f"Question: Which of the following passages is verbatim{self._source()}?",
                "Options:",
                *lines,
                "Answer:",
            ]
        )

    def _source(self) -> str:
        if not self.title:
            return ""
        return f' from the "{self.title}"' + (f" by {self.author}" if self.author else "")


def choice_question(
    text: str, paraphrases: Sequence[str], fields: Mapping[str, Any] | None = None
) -> ChoiceQuestion | str:
    """Return the question about a passage, or the reason why there is none.

    Args:
        text: the passage, word for word.
        paraphrases: in other words; the first three are taken.
        fields: of the passage's row, whose `title` and `author` are named where they are texts.
    """
    wrong = len(LABELS) - 1
    if len(paraphrases) < wrong:
        return TOO_FEW
    options = (text, *paraphrases[:wrong])
    if not all(option.strip() for option in options):
        return EMPTY
    # Texts that differ in their spaces alone are no wrong answer that a model could know.
    if len({" ".join(option.split()) for option in options}) < len(options):
        return SAME
    title, author = (_text(fields or {}, name) for name in ("title", "author"))
    return ChoiceQuestion(options=options, title=title, author=author)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""
