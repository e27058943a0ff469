"""Norms of the gradient of one text's loss, and the file that holds them. Needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from inject.tables import as_tuple, read_parquet

Order = Literal["1", "2", "inf"]
ORDERS: tuple[Order, ...] = ("1", "2", "inf")
NORMS_FILE = "gradients.parquet"


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
    table = pa.table(
        {
            "example_id": pa.array(example_ids, pa.string()),
            "whole": pa.array([one.whole for one in norms], pa.float64()),
            "tensors": pa.array([one.tensors for one in norms], pa.list_(pa.float64())),
            "embeddings": pa.array([one.embeddings for one in norms], pa.list_(pa.float64())),
            "reason": pa.array([one.reason for one in norms], pa.string()),
        }
    )
    pq.write_table(table, folder / NORMS_FILE)


def read_norms(folder: Path) -> dict[str, GradientNorms]:
    """Read what `write_norms` wrote, by example id (rows of one id are alike)."""
    return {
        row["example_id"]: GradientNorms(
            whole=row["whole"],
            tensors=as_tuple(row["tensors"]),
            embeddings=as_tuple(row["embeddings"]),
            reason=row["reason"],
        )
        for row in read_parquet(folder / NORMS_FILE).to_pylist()
    }
