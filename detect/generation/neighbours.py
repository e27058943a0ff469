"""The neighbours of each text, how likely the target finds them, and the files that hold both.

Of a neighbour's token statistics the mean log-probability is stored alone, as 25
tables of tokens for each text would be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from inject.tables import read_records, write_records

NEIGHBOURS_FILE = "neighbours.parquet"
MEANS_FILE = "neighbour_means.parquet"
_ID, _REASON = ("example_id", pa.string()), ("reason", pa.string())
_TEXTS = pa.schema([_ID, ("texts", pa.list_(pa.string())), _REASON])
_MEANS = pa.schema([_ID, ("means", pa.list_(pa.float64())), _REASON])


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
    write_records(folder / NEIGHBOURS_FILE, _TEXTS, example_ids, rows)


def read_neighbours(folder: Path) -> dict[str, Neighbours]:
    """Read what `write_neighbours` wrote, by example id."""
    return read_records(folder / NEIGHBOURS_FILE, _TEXTS, Neighbours)


def write_means(folder: Path, example_ids: Sequence[str], rows: Sequence[NeighbourMeans]) -> None:
    """Write `neighbour_means.parquet`: one row an example, in order."""
    write_records(folder / MEANS_FILE, _MEANS, example_ids, rows)


def read_means(folder: Path) -> dict[str, NeighbourMeans]:
    """Read what `write_means` wrote, by example id."""
    return read_records(folder / MEANS_FILE, _MEANS, NeighbourMeans)
