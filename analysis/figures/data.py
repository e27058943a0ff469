"""The numbers behind a figure as a CSV file: one row a point, as it is drawn, never rounded."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.metrics_table import Cell
from inject.files import write_text
from inject.tables import csv_text

Row = Mapping[str, object]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV (RFC 4180, UTF-8); no file where there are none.

    Columns stand in the order in which they first appear; what a row lacks is empty, NaN too.
    """
    if not rows:
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    write_text(path, csv_text(names, ([row.get(name) for name in names] for row in rows)))


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
