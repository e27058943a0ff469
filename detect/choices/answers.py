"""What a target answered to multiple-choice questions, and the file that holds it.

A local model gives the log-probability of every label in every order, a server the letter. Either
is enough for every score, so that detectors can be re-run without a model. Needs no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from detect.choices.question import LABELS, ORDERS
from inject.tables import read_records, write_records

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
    """The answers about one passage, one for each of `detect.choices.question.ORDERS`."""

    log_probability: npt.NDArray[np.float32] | None = None
    """Of each label at the answer's position, over the whole vocabulary: [24, 4]. None where only
    letters are known."""
    letters: npt.NDArray[np.int8] | None = None
    """The place of the label that was named, [24]; -1 where the answer names none."""
    reason: str | None = None
    """Why there is no answer, else None."""
    document: str = ""
    """The document that the passage is of, where that is known."""
    tokens_in: int = 0
    """Tokens that a local model read for it, what its prompts share once; no file holds it."""


@dataclass(frozen=True, kw_only=True)
class ChoiceEvidence:
    """The answers about all examples, and about passages that no model saw."""

    answers: Sequence[ChoiceAnswers]
    """One a row."""
    clean: Sequence[ChoiceAnswers] = ()
    """About clean passages, which are never scored: the calibration."""


def write_answers(
    folder: Path, example_ids: Sequence[str], answers: Sequence[ChoiceAnswers]
) -> None:
    """Write `choices.parquet`: one row an example, in order."""
    flat = [
        replace(one, log_probability=_flat(one.log_probability), letters=_flat(one.letters))
        for one in answers
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


def _flat(values: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    return None if values is None else values.reshape(-1)
