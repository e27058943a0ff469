"""What a target answered to multiple-choice questions, and the file that holds it.

A local model gives the log-probability of every label in every order, a server the letter. Either
is enough for every score, so that detectors can be re-run without a model. Needs no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from detect.choices.question import LABELS, ORDERS
from inject.tables import read_parquet

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
    folder: Path,
    example_ids: Sequence[str],
    answers: Sequence[ChoiceAnswers],
    documents: Sequence[str] | None = None,
) -> None:
    """Write `choices.parquet`: one row an example, in order.

    Args:
        folder: where to write it.
        example_ids: one for each row.
        answers: as many.
        documents: the document of each passage; None for what the answers say themselves.
    """
    of = [one.document for one in answers] if documents is None else documents
    table = pa.table(
        [
            pa.array(example_ids, pa.string()),
            pa.array([_flat(one.log_probability) for one in answers], pa.list_(pa.float32())),
            pa.array([_flat(one.letters) for one in answers], pa.list_(pa.int8())),
            pa.array([one.reason for one in answers], pa.string()),
            pa.array(of, pa.string()),
        ],
        schema=SCHEMA,
    )
    pq.write_table(table, folder / ANSWERS_FILE)


def read_answers(folder: Path) -> dict[str, ChoiceAnswers]:
    """Read what `write_answers` wrote, by example id (rows of one id are alike)."""
    found = {}
    for row in read_parquet(folder / ANSWERS_FILE).to_pylist():
        values, letters = row["log_probability"], row["letters"]
        shape = (len(ORDERS), len(LABELS))
        found[row["example_id"]] = ChoiceAnswers(
            log_probability=None if values is None else np.array(values, np.float32).reshape(shape),
            letters=None if letters is None else np.array(letters, np.int8),
            reason=row["reason"],
            document=row["document"],
        )
    return found


def _flat(values: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    return None if values is None else values.reshape(-1)
