"""The training log: one row per optimiser step, in `log.parquet`.

Rows are kept in memory and written together at the end.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from inject.errors import InputError
from inject.files import replacing
from inject.model_folder import LOG_FILE
from inject.tables import read_parquet, record_schema


class TrainingProgress(NamedTuple):
    """Progress of a run."""

    tokens: int
    """Fed so far."""
    total: int
    """To be fed in all."""
    loss: float
    """Loss of the last step, in nats per token."""
    tokens_per_second: float
    mfu: float
    """Model FLOPs utilisation; NaN if the device's peak is unknown."""


class LogRow(NamedTuple):
    """The record of one optimiser step."""

    step: int
    """From 1."""
    tokens: int
    """Tokens seen after the step."""
    loss: float
    """Mean negative log-likelihood of the step's target tokens before the update, in nats; NaN in
    a step without any. For an unlearning run: the method's own loss, the mean over texts."""
    lr: float
    """Learning rate of the update."""
    tokens_per_second: float
    """Tokens of the step over its wall time."""
    mfu: float = float("nan")
    """Model FLOPs utilisation; NaN if the device's peak is unknown."""


SCHEMA = record_schema(LogRow)


def write_log(folder: Path, rows: Sequence[LogRow]) -> None:
    """Write `log.parquet` into a folder, atomically."""
    table = pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA)
    with replacing(folder / LOG_FILE) as temporary:
        pq.write_table(table, temporary)


def read_log(folder: Path) -> list[LogRow]:
    """Read the log that `write_log` wrote, in the same order.

    Raises:
        InputError: if there is no such file.
    """
    path = folder / LOG_FILE
    if not path.is_file():
        raise InputError("there is no training log here", where=str(path))
    return [LogRow(**row) for row in read_parquet(path, columns=SCHEMA.names).to_pylist()]
