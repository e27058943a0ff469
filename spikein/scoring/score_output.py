"""Scores as a file of the user's choice: Parquet, CSV or JSON Lines, by the name's end.

Whole or not at all. Parquet keeps the record of how they were made; in CSV a missing score is an
empty cell, in JSON Lines null. In CSV an id that a spreadsheet would take for a formula has an
apostrophe before it (`inject.tables.csv_text`).
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from detect.scores.table import write_score_table
from inject.errors import InputError
from inject.files import write_text
from inject.tables import csv_text

SUFFIXES = (".parquet", ".csv", ".jsonl")


def check_suffix(path: Path) -> None:
    """Refuse a name whose end names no format, before anything is scored.

    Raises:
        InputError: with the allowed ends.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"scores cannot be written as {path.suffix or 'a name without an end'!r}",
            where=str(path),
            allowed=", ".join(SUFFIXES),
        )


def write_score_file(path: Path, scores: pa.Table, *, record: Mapping[str, Any]) -> None:
    """Write the rows of scores in the format that `path` ends with.

    Raises:
        InputError: the end names no format.
    """
    check_suffix(path)
    if path.suffix.lower() == ".parquet":
        write_score_table(path, scores, record=record)
        return
    rows = [
        {**row, "score": None if math.isnan(row["score"]) else row["score"]}
        for row in scores.to_pylist()
    ]
    if path.suffix.lower() == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        write_text(path, "".join(f"{line}\n" for line in lines))
        return
    write_text(path, csv_text(scores.column_names, [list(row.values()) for row in rows], end="\n"))
