"""Norms of the gradient of one text's loss, and the file that holds them. Needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa

from inject.tables import read_records, write_records

Order = Literal["1", "2", "inf"]
ORDERS: tuple[Order, ...] = ("1", "2", "inf")
NORMS_FILE = "gradients.parquet"
SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("whole", pa.float64()),
        ("tensors", pa.list_(pa.float64())),
        ("embeddings", pa.list_(pa.float64())),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class GradientNorms:
    """The norms of one text; None throughout where it has no loss."""

    whole: float | None = None
    """2-norm over all trained parameters together."""
    tensors: tuple[float, ...] | None = None
    """Mean over the trained tensors of each one's p-norm, for p of `ORDERS`."""
    embeddings: tuple[float, ...] | None = None
    """p-norm of the gradient with respect to the input embeddings, for p of `ORDERS`."""
    reason: str | None = None
    """Why there is none, else None."""
    tokens_in: int = field(default=0, compare=False)
    """Tokens whose loss it is; no file holds it."""


def write_norms(folder: Path, example_ids: Sequence[str], norms: Sequence[GradientNorms]) -> None:
    """Write `gradients.parquet`: one row an example, in order."""
    write_records(folder / NORMS_FILE, SCHEMA, example_ids, norms)


def read_norms(folder: Path) -> dict[str, GradientNorms]:
    """Read what `write_norms` wrote, by example id."""
    return read_records(folder / NORMS_FILE, SCHEMA, GradientNorms)
