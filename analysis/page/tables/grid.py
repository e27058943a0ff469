"""Tables of intervals: a row for each detector, a column for each arm, split to fit a page.

A table is first made with a line for each arm, then turned. The number of examples behind a line
stands in its head, and also in each cell that was measured on other examples: no value is shown
with the n of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from analysis.arm import MODEL_FREE
from analysis.metrics_table import Cell
from analysis.selection.ranking import common_rows, rank_detectors

MAX_COLUMNS = 5
"""Columns beside the row heads that fit on 17 cm of paper."""


MAX_ROWS = 16
"""Rows that are shown without a fold."""
OPEN_ROWS = 12
"""Rows before the fold of a longer table."""


class Head(NamedTuple):
    """The head of a row or column, and a note under it."""

    text: str
    note: str = ""


class ShownCell(NamedTuple):
    """One cell of a table."""

    cell: Cell | None
    best: bool = False
    n: str = ""
    """The examples behind the value, where they are not those of the head's note."""


class GridRow(NamedTuple):
    """A row: its head, and one cell a column."""

    head: Head
    cells: list[ShownCell]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of intervals."""

    title: str
    corner: str
    columns: list[Head]
    rows: list[GridRow]
    caption: str

    @property
    def folded(self) -> int:
        """How many rows at the end are folded away; 0 where all fit."""
        return len(self.rows) - OPEN_ROWS if len(self.rows) > MAX_ROWS else 0

    def open_part(self) -> "Grid":
        """Return the rows that are not folded away."""
        return replace(self, rows=self.rows[: len(self.rows) - self.folded])

    def folded_part(self) -> "Grid":
        """Return the rows that are."""
        rows = self.rows[len(self.rows) - self.folded :]
        return replace(self, title=f"{self.title}, continued", rows=rows, caption="As above.")


def table_line(
    head: str, note: str, detectors: Sequence[str], cells: Sequence[Cell | None]
) -> GridRow:
    """Return one line of a table; the best detector is marked where its interval is above 0.5.

    Args:
        head: the name of the line.
        note: the text under the head, before the number of rows and seeds.
        detectors: the columns.
        cells: one a detector.
    """
    named = dict(zip(detectors, cells, strict=True))
    measured = {name: cell for name, cell in named.items() if name not in MODEL_FREE}
    rows = common_rows(measured if any(measured.values()) else named)
    best = next((name for name in rank_detectors(named)), None)
    subtitle = " · ".join(part for part in (note, _row_counts(cells, rows)) if part)
    return GridRow(
        Head(head, subtitle), [_shown(name, cell, best, rows) for name, cell in named.items()]
    )


def without_best(row: GridRow) -> GridRow:
    """Return a line without a best detector, for a model that saw no copy of the members."""
    return row._replace(cells=[shown._replace(best=False) for shown in row.cells])


def tables_by_detector(
    title: str, detectors: Sequence[str], lines: Sequence[GridRow], caption: str
) -> list[Grid]:
    """Return lines as tables of a row a detector; detectors without any value are left out.

    Returns:
        As few tables as hold all lines; none where there is nothing to show.
    """
    rows = [
        GridRow(Head(name), [line.cells[at] for line in lines])
        for at, name in enumerate(detectors)
        if any(line.cells[at].cell for line in lines)
    ]
    if not rows:
        return []
    heads = [one.head for one in lines]
    whole = Grid(title=title, corner="Detector", columns=heads, rows=rows, caption=caption)
    return split_table(whole)


def split_table(grid: Grid) -> list[Grid]:
    """Cut a table into tables of at most `MAX_COLUMNS` columns, of about the same width."""
    count = -(-len(grid.columns) // MAX_COLUMNS) or 1
    ends = [round(len(grid.columns) * at / count) for at in range(count + 1)]
    cut = []
    for at in range(count):
        part = slice(ends[at], ends[at + 1])
        rows = [row._replace(cells=row.cells[part]) for row in grid.rows]
        cut.append(
            replace(
                grid,
                title=grid.title if count == 1 else f"{grid.title}, {at + 1} of {count}",
                columns=grid.columns[part],
                rows=[row for row in rows if any(shown.cell for shown in row.cells)],
                caption=grid.caption if at == 0 else "As above.",
            )
        )
    return cut


def _shown(name: str, cell: Cell | None, best: str | None, rows: tuple[int, int]) -> ShownCell:
    if cell is None:
        return ShownCell(None)
    own = (cell.n_members, cell.n_nonmembers)
    return ShownCell(
        cell,
        best=name == best and cell.low > 0.5,
        n="" if own == rows else f"{own[0]:,} + {own[1]:,}",
    )


def _row_counts(cells: Sequence[Cell | None], rows: tuple[int, int]) -> str:
    seeds = {
        cell.n_seeds
        for cell in cells
        if cell is not None and (cell.n_members, cell.n_nonmembers) == rows
    }
    if not seeds:
        return ""
    n_seeds = max(seeds)
    return f"{rows[0]:,} + {rows[1]:,}, {n_seeds} {'seed' if n_seeds == 1 else 'seeds'}"
