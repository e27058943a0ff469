"""One text that copies of an example can carry, as tokens; and the file of all of them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inject.examples.example import Example
from inject.keyed import I64
from inject.tables import read_parquet

RENDITIONS_FILE = "renditions.parquet"

WHOLE = "whole"

SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("kind", pa.int32()),
        ("variant", pa.string()),
        ("tokens", pa.list_(pa.int64())),
    ]
)


class Rendition(NamedTuple):
    """The tokens of one variant of one example."""

    example_id: str
    kind: int
    """Index into `Variants.of`."""
    variant: str
    """Label: `whole`, `question`, `paraphrase-2` …"""
    tokens: I64


def kind_of(variant: str) -> str:
    """Return a variant's label without its version: `paraphrase` for `paraphrase-2`."""
    return re.sub(r"-\d+$", "", variant)


def whole_renditions(members: Sequence[Example], tokens: Mapping[str, I64]) -> list[Rendition]:
    """Return each member's own text as its only rendition, in the order given."""
    return [Rendition(member.example_id, 0, WHOLE, tokens[member.example_id]) for member in members]


def write_renditions(folder: Path, renditions: Sequence[Rendition]) -> None:
    """Write renditions into a folder, as `renditions.parquet` (columns as in `SCHEMA`)."""
    rows = [
        {**rendition._asdict(), "tokens": rendition.tokens.tolist()} for rendition in renditions
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / RENDITIONS_FILE)


def read_renditions(folder: Path) -> list[Rendition]:
    """Read the renditions that `write_renditions` wrote, in the same order."""
    rows = read_parquet(folder / RENDITIONS_FILE).to_pylist()
    return [Rendition(**{**row, "tokens": np.array(row["tokens"], dtype=np.int64)}) for row in rows]
