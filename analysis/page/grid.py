"""Tables of intervals: made a line an arm, shown a row a detector, in blocks that fit a page.

Detectors are rows because there are many of them and few arms; a table of more columns than a
sheet of paper holds is cut into several. The number of rows behind a line stands in its head, and
in each cell that was measured on other rows: a number never borrows another's n.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from analysis.arm import MODEL_FREE
from analysis.metrics_table import Cell
from analysis.selection.ranking import common_rows, rank_detectors

MOST_COLUMNS = 5
"""Columns beside the heads that 17 cm of paper hold."""


class Head(NamedTuple):
    """The head of a row or column, and a note under it."""

    text: str
    note: str = ""


class Shown(NamedTuple):
    """One place of a table."""

    cell: Cell | None
    best: bool = False
    n: str = ""
    """The rows behind the value where the head's note names others."""


class GridRow(NamedTuple):
    """A row: its head, and one place a column."""

    head: Head
    places: list[Shown]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of intervals."""

    title: str
    corner: str
    columns: list[Head]
    rows: list[GridRow]
    caption: str


def line(head: str, note: str, detectors: Sequence[str], cells: Sequence[Cell | None]) -> GridRow:
    """Return one line, the best detector marked where its interval lies above 0.5.

    Args:
        head: what the line is of.
        note: what stands under the head, before the number of rows and seeds.
        detectors: the columns.
        cells: one a detector.
    """
    named = dict(zip(detectors, cells, strict=True))
    looking = {name: cell for name, cell in named.items() if name not in MODEL_FREE}
    rows = common_rows(looking if any(looking.values()) else named)
    best = next((name for name in rank_detectors(named)), None)
    told = " · ".join(part for part in (note, _behind(cells, rows)) if part)
    return GridRow(
        Head(head, told), [_shown(name, cell, best, rows) for name, cell in named.items()]
    )


def unmarked(row: GridRow) -> GridRow:
    """Return the line without a best, for a model that should tell nothing."""
    return row._replace(places=[place._replace(best=False) for place in row.places])


def by_detector(
    title: str, detectors: Sequence[str], lines: Sequence[GridRow], caption: str
) -> list[Grid]:
    """Return lines as tables of a row a detector; detectors without any value are left out.

    Returns:
        As few tables as hold all lines; none where there is nothing to show.
    """
    rows = [
        GridRow(Head(name), [one.places[at] for one in lines])
        for at, name in enumerate(detectors)
        if any(one.places[at].cell for one in lines)
    ]
    if not rows:
        return []
    heads = [one.head for one in lines]
    whole = Grid(title=title, corner="Detector", columns=heads, rows=rows, caption=caption)
    return blocks(whole)


def blocks(grid: Grid) -> list[Grid]:
    """Cut a table into tables of at most `MOST_COLUMNS` columns, of about the same width."""
    count = -(-len(grid.columns) // MOST_COLUMNS) or 1
    ends = [round(len(grid.columns) * at / count) for at in range(count + 1)]
    cut = []
    for at in range(count):
        part = slice(ends[at], ends[at + 1])
        rows = [row._replace(places=row.places[part]) for row in grid.rows]
        cut.append(
            replace(
                grid,
                title=grid.title if count == 1 else f"{grid.title}, {at + 1} of {count}",
                columns=grid.columns[part],
                rows=[row for row in rows if any(place.cell for place in row.places)],
                caption=grid.caption if at == 0 else "As above.",
            )
        )
    return cut


def _shown(name: str, cell: Cell | None, best: str | None, rows: tuple[int, int]) -> Shown:
    if cell is None:
        return Shown(None)
    own = (cell.n_members, cell.n_nonmembers)
    return Shown(
        cell,
        best=name == best and cell.low > 0.5,
        n="" if own == rows else f"{own[0]:,} + {own[1]:,}",
    )


def _behind(cells: Sequence[Cell | None], rows: tuple[int, int]) -> str:
    seeds = {
        cell.n_seeds
        for cell in cells
        if cell is not None and (cell.n_members, cell.n_nonmembers) == rows
    }
    if not seeds:
        return ""
    most = max(seeds)
    return f"{rows[0]:,} + {rows[1]:,}, {most} {'seed' if most == 1 else 'seeds'}"
