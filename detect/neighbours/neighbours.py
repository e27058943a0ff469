"""The neighbours of each text, how likely the target finds them, and the files that hold both.

Of a neighbour's token statistics the mean log-probability is stored alone, as 25
tables of tokens for each text would be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from inject.tables import read_parquet

NEIGHBOURS_FILE = "neighbours.parquet"
MEANS_FILE = "neighbour_means.parquet"


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The neighbours of one text, the likeliest exchange first."""

    texts: tuple[str, ...] = ()
    reason: str | None = None
    """Why there is none, else None."""


@dataclass(frozen=True, kw_only=True)
class NeighbourMeans:
    """How likely the target finds the neighbours of one text."""

    means: tuple[float, ...] = ()
    """Mean log-probability of each neighbour that could be scored."""
    reason: str | None = None
    """Why there is none, else None."""


def write_neighbours(folder: Path, example_ids: Sequence[str], rows: Sequence[Neighbours]) -> None:
    """Write `neighbours.parquet`: one row an example, in order."""
    table = pa.table(
        {
            "example_id": pa.array(example_ids, pa.string()),
            "texts": pa.array([row.texts for row in rows], pa.list_(pa.string())),
            "reason": pa.array([row.reason for row in rows], pa.string()),
        }
    )
    pq.write_table(table, folder / NEIGHBOURS_FILE)


def read_neighbours(folder: Path) -> dict[str, Neighbours]:
    """Read what `write_neighbours` wrote, by example id."""
    return {
        row["example_id"]: Neighbours(texts=tuple(row["texts"]), reason=row["reason"])
        for row in read_parquet(folder / NEIGHBOURS_FILE).to_pylist()
    }


def write_means(folder: Path, example_ids: Sequence[str], rows: Sequence[NeighbourMeans]) -> None:
    """Write `neighbour_means.parquet`: one row an example, in order."""
    table = pa.table(
        {
            "example_id": pa.array(example_ids, pa.string()),
            "means": pa.array([row.means for row in rows], pa.list_(pa.float64())),
            "reason": pa.array([row.reason for row in rows], pa.string()),
        }
    )
    pq.write_table(table, folder / MEANS_FILE)


def read_means(folder: Path) -> dict[str, NeighbourMeans]:
    """Read what `write_means` wrote, by example id."""
    return {
        row["example_id"]: NeighbourMeans(means=tuple(row["means"]), reason=row["reason"])
        for row in read_parquet(folder / MEANS_FILE).to_pylist()
    }
