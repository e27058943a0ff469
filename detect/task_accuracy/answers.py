"""A model's answer to each example's question: one row per example, and their file.

Contains ids and figures, never a text. Needs no torch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from inject.files import replacing
from inject.tables import read_parquet, record_schema

ACCURACY_FILE = "accuracy.parquet"


class AccuracyRow(NamedTuple):
    """A model's answer to one example."""

    example_id: str
    dataset: str
    side: str
    answers: int | None = None
    """Number of answers to choose from; None if there is no question."""
    correct_plain: bool | None = None
    correct_calibrated: bool | None = None
    probability_plain: float | None = None
    """Probability of the right answer, from the scores of all answers."""
    probability_calibrated: float | None = None
    reason: str | None = None
    """Reason for a missing question."""


def write_accuracy(folder: Path, rows: Sequence[AccuracyRow]) -> None:
    """Write `accuracy.parquet` into a folder, atomically."""
    table = pa.Table.from_pylist([row._asdict() for row in rows], schema=record_schema(AccuracyRow))
    with replacing(folder / ACCURACY_FILE) as temporary:
        pq.write_table(table, temporary)


def read_accuracy(folder: Path) -> list[AccuracyRow]:
    """Read the answers that `write_accuracy` wrote, in the same order."""
    return [AccuracyRow(**row) for row in read_parquet(folder / ACCURACY_FILE).to_pylist()]
