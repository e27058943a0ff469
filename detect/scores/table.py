"""`scores.parquet`: the scores of one model, with their metadata.

Rows are ordered by detector, then by setting, then by example. A missing score is NaN with its
reason.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from inject.files import replacing
from inject.tables import named_errors, read_parquet

SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("example_id", pa.string()),
        ("detector", pa.string()),
        ("setting", pa.string()),
        ("score", pa.float64()),
        ("reason", pa.string()),
    ]
)
SCORES_FILE = "scores.parquet"
HELD_OUT_SCORES = "held_out_scores.parquet"
"""Scores of held-out rows, if a user's file has any: they calibrate decisions about the rest."""
_METADATA_KEY = b"spikein"


def write_scores(folder: Path, scores: pa.Table, *, record: Mapping[str, Any]) -> None:
    """Write `scores.parquet` into a folder, see `write_score_table`."""
    write_score_table(folder / SCORES_FILE, scores, record=record)


def write_score_table(path: Path, scores: pa.Table, *, record: Mapping[str, Any]) -> None:
    """Write scores to a Parquet file atomically, with their scoring policies."""
    metadata = {_METADATA_KEY: json.dumps(record, sort_keys=True).encode()}
    with replacing(path) as temporary:
        pq.write_table(scores.replace_schema_metadata(metadata), temporary)


def read_scores(
    folder: Path, *, columns: Sequence[str] | None = None, repeated: Sequence[str] = ()
) -> pa.Table:
    """Read the table that `write_scores` wrote: columns as in `SCHEMA`, or the named ones.

    Args:
        folder: folder of the scores.
        columns: columns to read; None for all.
        repeated: columns with few different texts, each stored once.

    Raises:
        InputError: naming the file, when it is missing or damaged.
    """
    return read_parquet(folder / SCORES_FILE, columns=columns, repeated=repeated)


def score_notes(folder: Path) -> tuple[str, ...]:
    """Return the notes stored with scores: omissions, and the detectors' own notes.

    Raises:
        InputError: naming the file, when it is missing or damaged.
    """
    return tuple(_record(folder).get("notes", ()))


def default_settings(folder: Path) -> dict[str, str]:
    """Return the default setting of each detector, stored with scores.

    Raises:
        InputError: naming the file, when it is missing or damaged.
    """
    return dict(_record(folder).get("defaults", {}))


def _record(folder: Path) -> dict[str, Any]:
    path = folder / SCORES_FILE
    with named_errors(path):
        metadata = pq.read_schema(path).metadata or {}
    return json.loads(metadata.get(_METADATA_KEY, b"{}"))
