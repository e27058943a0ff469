"""How a model answered each example's question: one row an example, and the file of all of them.

Holds ids and figures, never a text. Needs no torch.
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
    """How one example was answered."""

    example_id: str
    dataset: str
    side: str
    answers: int | None = None
    """How many there were to choose from; None if it could not be asked."""
    correct_plain: bool | None = None
    correct_calibrated: bool | None = None
    probability_plain: float | None = None
    """Of the right answer, the scores of all answers turned into probabilities."""
    probability_calibrated: float | None = None
    reason: str | None = None
    """Why it could not be asked."""


def write_accuracy(folder: Path, rows: Sequence[AccuracyRow]) -> None:
    """Write `accuracy.parquet` into a folder, whole or not at all."""
    table = pa.Table.from_pylist([row._asdict() for row in rows], schema=record_schema(AccuracyRow))
    with replacing(folder / ACCURACY_FILE) as temporary:
        pq.write_table(table, temporary)


def read_accuracy(folder: Path) -> list[AccuracyRow]:
    """Read what `write_accuracy` wrote, in the same order."""
    return [AccuracyRow(**row) for row in read_parquet(folder / ACCURACY_FILE).to_pylist()]
