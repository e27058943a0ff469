"""The numbers behind a figure as a CSV file: one row a point, as it is drawn, never rounded."""

import csv
import io
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from analysis.metrics_table import Cell
from inject.files import write_text

Row = Mapping[str, object]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV (RFC 4180, UTF-8); no file where there are none.

    Columns stand in the order in which they first appear; what a row lacks is empty, NaN too.
    """
    if not rows:
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for row in rows:
        writer.writerow([_text(row.get(name)) for name in names])
    write_text(path, text.getvalue())


def cell_columns(cell: Cell) -> dict[str, object]:
    """Return a cell's number, its interval and what stands behind it."""
    return {
        "value": cell.value,
        "low": cell.low,
        "high": cell.high,
        "n_members": cell.n_members,
        "n_nonmembers": cell.n_nonmembers,
        "n_seeds": cell.n_seeds,
    }


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)
