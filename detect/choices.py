"""Multiple choice: one question per passage, the target's answers, and the file that contains them.

Duarte et al. 2024 (DE-COP), section 4 and appendix C: the verbatim text among three paraphrases,
asked in all 24 orders of the four options, because models favour some labels regardless of the
option. The wording is from the paper's tables 9 and 10; if a text has no title, the question names
none. A local model gives the log-probability of every label in every order, a server the letter.
Either suffices for every score, so detectors can be re-run without a model. Needs no torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inject.tables import read_records, write_records

LABELS = ("A", "B", "C", "D")
"""The options' labels, in their order."""
ORDERS = tuple(permutations(range(len(LABELS))))
"""Every order: the option at each label. Option 0 is the verbatim passage."""
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
    """A passage, its paraphrases, and their document."""

    options: tuple[str, ...]
    """The verbatim passage, then three paraphrases."""
    title: str = ""
    author: str = ""

    def prompt(self, order: Sequence[int]) -> str:
        """Return the question with its options in one order, up to the answer.

        Args:
            order: the option at each label.
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
    """Return the question about a passage, or the reason for its absence.

    Args:
        text: the passage, word for word.
        paraphrases: in other words; the first three are used.
        fields: fields of the passage's row; its `title` and `author` are named if they are texts.
    """
    wrong = len(LABELS) - 1
    if len(paraphrases) < wrong:
        return TOO_FEW
    options = (text, *paraphrases[:wrong])
    if not all(option.strip() for option in options):
        return EMPTY
    # Texts that differ only in their spaces are not wrong answers that a model could recognise.
    if len({" ".join(option.split()) for option in options}) < len(options):
        return SAME
    title, author = (_text(fields or {}, name) for name in ("title", "author"))
    return ChoiceQuestion(options=options, title=title, author=author)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""


ANSWERS_FILE = "choices.parquet"
NO_LETTER = -1
SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("log_probability", pa.list_(pa.float32())),
        ("letters", pa.list_(pa.int8())),
        ("reason", pa.string()),
        ("document", pa.string()),
    ]
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoiceAnswers:
    """The answers about one passage, one for each of `detect.choices.ORDERS`."""

    log_probability: npt.NDArray[np.float32] | None = None
    """Of each label at the answer's position, over the whole vocabulary: [24, 4]. None if only
    letters are known."""
    letters: npt.NDArray[np.int8] | None = None
    """The place of the named label, [24]; -1 if the answer names none."""
    reason: str | None = None
    """Why there is no answer, else None."""
    document: str = ""
    """The passage's document, if known."""
    tokens_in: int = 0
    """Tokens that a local model read for it, shared parts of its prompts counted once; not
    stored."""


@dataclass(frozen=True, kw_only=True)
class ChoiceEvidence:
    """The answers about all examples, and about unseen passages."""

    answers: Sequence[ChoiceAnswers]
    """One per row."""
    clean: Sequence[ChoiceAnswers] = ()
    """Answers about clean passages, which are never scored: the calibration."""


def write_answers(
    folder: Path, example_ids: Sequence[str], answers: Sequence[ChoiceAnswers]
) -> None:
    """Write `choices.parquet`: one row per example, in order."""
    flat = [
        replace(row, log_probability=_ravel(row.log_probability), letters=_ravel(row.letters))
        for row in answers
    ]
    write_records(folder / ANSWERS_FILE, SCHEMA, example_ids, flat)


def read_answers(folder: Path) -> dict[str, ChoiceAnswers]:
    """Read what `write_answers` wrote, by example id."""
    return read_records(folder / ANSWERS_FILE, SCHEMA, _answers)


def _answers(log_probability: Any, letters: Any, **further: Any) -> ChoiceAnswers:
    shape = (len(ORDERS), len(LABELS))
    return ChoiceAnswers(
        log_probability=(
            None
            if log_probability is None
            else np.array(log_probability, np.float32).reshape(shape)
        ),
        letters=None if letters is None else np.array(letters, np.int8),
        **further,
    )


def _ravel(values: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    return None if values is None else values.reshape(-1)
