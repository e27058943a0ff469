"""Where the named entities of texts stand, and the file that holds them. Needs no spaCy."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from inject.tables import read_parquet

ENTITIES_FILE = "entities.parquet"
SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("start", pa.list_(pa.int32())),
        ("stop", pa.list_(pa.int32())),
        ("label", pa.list_(pa.string())),
    ]
)


class NamedEntity(NamedTuple):
    """One named entity of a text."""

    start: int
    """Its first character."""
    stop: int
    """One past its last."""
    label: str
    """What the tagger calls it, such as `PERSON`."""


def write_entities(
    folder: Path, example_ids: Sequence[str], rows: Sequence[Sequence[NamedEntity]]
) -> None:
    """Write `entities.parquet`: one row an example, in order."""
    table = [
        {
            "example_id": name,
            **{field: [getattr(one, field) for one in row] for field in NamedEntity._fields},
        }
        for name, row in zip(example_ids, rows, strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(table, schema=SCHEMA), folder / ENTITIES_FILE)


def read_entities(folder: Path) -> dict[str, list[NamedEntity]]:
    """Read what `write_entities` wrote, by example id (rows of one id are alike).

    Raises:
        InputError: naming the file, when it is missing or damaged.
    """
    return {
        row["example_id"]: [
            NamedEntity(*one)
            for one in zip(*(row[field] for field in NamedEntity._fields), strict=True)
        ]
        for row in read_parquet(folder / ENTITIES_FILE, schema=SCHEMA).to_pylist()
        if row["start"] is not None
    }
