"""Numbers by row and column: what most sections show.

One crossing is a table, a matrix, panels of lines and the CSV file of a picture, so that
all four contain the same numbers.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from analysis.arm import MODEL_FREE
from analysis.findings import Item, Row
from analysis.intervals.estimate import Estimate
from analysis.page.drawing.elements import round_limits, round_ticks
from analysis.page.drawing.matrix import AxisHeading, Matrix, auc_axis, difference_axis
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.table import Table, TableColumn, split_table, with_noun
from analysis.selection.ranking import common_rows, rank_detectors
from analysis.summary import NO_NAMES, Names
from analysis.unit import AUC, Dot, Entry, Unit

MAX_PANELS = 20


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """Numbers by row and column."""

    rows: Sequence[AxisHeading]
    columns: Sequence[AxisHeading]
    cells: Mapping[tuple[AxisHeading, AxisHeading], Row | str]
    """A text replaces a missing number. Places in no shown row or column also count:
    the CSV file has them."""
    unit: Unit
    bold: Collection[tuple[AxisHeading, AxisHeading]] = field(default=())
    counted: Mapping[tuple[AxisHeading, AxisHeading], str] = field(default_factory=dict)
    """The number of examples, if the column's head does not contain it."""

    def table(self, title: str, head: str, caption: str) -> Table:
        """Return one line per row."""
        columns = [TableColumn(head)]
        columns += [TableColumn(own.words, right=True, note=own.note) for own in self.columns]
        rows = [
            (
                Entry(row.words, notes=(row.note,) if row.note else (), kind=row.kind),
                *(self._entry(row, column) for column in self.columns),
            )
            for row in self.rows
        ]
        return Table(title=title, columns=tuple(columns), rows=tuple(rows), caption=caption)

    def tables(self, title: str, head: str, caption: str) -> list[Table]:
        """Return as few tables as fit a page; none without any number."""
        table = self.table(title, head, caption)
        return split_table(table) if self.cells else []

    def matrix(self, label: str = "", *, row_height: float = 20.0) -> Matrix | None:
        """Return one row per head, with a number, a dot and a line; None without any number."""
        columns = [(head, [self._dot(row, head) for row in self.rows]) for head in self.columns]
        dots = [dot for _, places in columns for dot in places if isinstance(dot, Dot)]
        if not dots:
            return None
        return Matrix(
            rows=self.rows,
            columns=columns,
            axis=difference_axis(columns) if self.unit.signed else auc_axis(columns),
            label=label or "; ".join(dot.hover for dot in dots[: len(self.rows)]),
            row_height=row_height,
        )

    def panels(
        self, label: str, x_label: str, *, ghost: bool = True, kind: str = "", per_row: int = 5
    ) -> Panels | None:
        """Return one panel per row of AUCs or differences; None without any number.

        Args:
            label: what it shows, for readers who do not see it; numbers are added.
            x_label: what columns are.
            ghost: repeat the line of the first panel in the others.
            kind: of all lines; empty for that of their rows.
            per_row: panels side by side.
        """
        points = {row: self._points(row) for row in self.rows}
        measured = [(row, dots) for row, dots in points.items() if dots][:MAX_PANELS]
        lines = {row: Line(dots, kind or row.kind) for row, dots in measured}
        dots = [dot for line in lines.values() for _, dot in line.points]
        ticks = {head.at: head.label for head in sorted(self.columns, key=lambda head: head.at)}
        if not lines:
            return None
        if len(ticks) == 1:
            ticks = {at + offset: label if not offset else ""
                     for at, label in ticks.items() for offset in (-1, 0, 1)}  # fmt: skip
        first = next(iter(lines.values()))
        before = [first._replace(kind="ghost")] if ghost else []
        centre, steps = self._steps([end for dot in dots for end in (dot.low, dot.high)])
        values_text = "; ".join(
            f"{row.words} {', '.join(dot.text for _, dot in line.points)}"
            for row, line in lines.items()
        )
        return Panels(
            panels=[
                LinePanel(
                    row.group or row.label,
                    [line] if line is first else [*before, line],
                    row.label if row.group else row.note,
                )
                for row, line in lines.items()
            ],
            x=[*ticks.items()],
            y=steps,
            centre=centre,
            x_label=x_label,
            label=f"{label} ({', '.join(filter(None, ticks.values()))}): {values_text}",
            height=330.0 if len(lines) <= per_row else 250.0,
            per_row=per_row,
        )

    def behind(self) -> str:
        """Return a number's counts: `17 to 45 members, 60 non-members, 2 training seeds`."""
        cells = [Estimate.of(row) for row in self.cells.values() if not isinstance(row, str)]
        if not cells:
            return ""
        members, others = (
            " to ".join(dict.fromkeys(f"{end:,}" for end in (min(numbers), max(numbers))))
            for numbers in zip(*((cell.members, cell.nonmembers) for cell in cells), strict=True)
        )
        seeds = with_noun(max(cell.seeds for cell in cells), "training seed")
        return f"{members} members, {others} non-members, {seeds}"

    def records(self, row: str, column: str) -> list[dict[str, object]]:
        """Return one row per number, including numbers that no picture has room for."""
        ends = ("value", "low", "high", "n_members", "n_nonmembers", "n_seeds")
        return [
            {
                row: line.words if line.name is None else line.name,
                column: head.words if head.name is None else head.name,
                "setting": cell.get("setting", ""),
                **{name: cell.get(name, 0) for name in ends},
            }
            for (line, head), cell in self.cells.items()
            if not isinstance(cell, str)
        ]

    def _entry(self, row: AxisHeading, column: AxisHeading) -> Entry:
        place = row, column
        cell = self.cells.get(place)
        measured = None if isinstance(cell, str) else cell
        return self.unit.entry(measured, best=place in self.bold, n=self.counted.get(place, ""))

    def _dot(self, row: AxisHeading, column: AxisHeading) -> Dot | str | None:
        place = row, column
        cell = self.cells.get(place)
        if isinstance(cell, str):
            return cell
        head = ", ".join(filter(None, (row.words, column.words)))
        return self.unit.dot(head, cell, bold=place in self.bold)

    def _steps(self, ends: Sequence[float]) -> tuple[float, list[tuple[float, str]]]:
        """Return the number at which nothing is found, and the ticks of an axis."""
        if self.unit.signed:
            ticks = round_ticks(*round_limits(ends, 1, 0.0))
            return 0.0, [
                (value, f"{value:+g}".replace("-", "−") if value else "0") for value in ticks
            ]
        low, high = round_limits(ends, 0.1, 0.5, 1.0)
        ticks = [round(low + at / 10, 1) for at in range(round((high - low) * 10) + 1)]
        return 0.5, [(value, f"{value:.1f}") for value in ticks]

    def _points(self, row: AxisHeading) -> list[tuple[float, Dot]]:
        dots = ((column.at, self._dot(row, column)) for column in self.columns)
        return sorted((x, dot) for x, dot in dots if isinstance(dot, Dot))


def cross(
    items: Iterable[Item],
    row: Callable[[Item], AxisHeading],
    column: Callable[[Item], AxisHeading],
    *,
    unit: Unit,
    cell: Callable[[Item], Row | str | None],
    bold: Callable[[Item], bool] = lambda _: False,
    counted: Callable[[Item], str] = lambda _: "",
    displayed: tuple[Sequence[AxisHeading], Sequence[AxisHeading]] | None = None,
) -> Crossed:
    """Return numbers by row and column.

    Args:
        items: one a number, or more.
        row: its line.
        column: its column.
        unit: of all numbers.
        cell: the row of findings that contains it.
        bold: whether it is emphasised.
        counted: the number of examples, if the column's head does not contain it.
        displayed: rows and columns that are shown; None for all, in order of appearance.
    """
    cells: dict[tuple[AxisHeading, AxisHeading], Row | str] = {}
    places: dict[tuple[AxisHeading, AxisHeading], Item] = {}
    for item in items:
        place = row(item), column(item)
        places[place] = item
        if (value := cell(item)) is not None:
            cells[place] = value
    rows, columns = displayed or (
        [*dict.fromkeys(head for head, _ in places)],
        [*dict.fromkeys(head for _, head in places)],
    )
    return Crossed(
        rows=rows,
        columns=columns,
        cells=cells,
        unit=unit,
        bold={place for place, item in places.items() if bold(item)},
        counted={place: counted(item) for place, item in places.items()},
    )


def auc_tables(
    title: str,
    detectors: Sequence[str],
    columns: Mapping[str, Mapping[str, Row | None]],
    caption: str,
    *,
    names: Names = NO_NAMES,
    tune: Mapping[str, float] | None = None,
) -> list[Table]:
    """Return one row per detector, in tables that fit a page.

    A column's head contains its number of examples. Cells that were measured on other examples
    contain their own: no value is shown with the n of another.

    Args:
        title: of the tables.
        detectors: in their order; those without any value are left out.
        columns: AUCs by detector, by the heads of the columns.
        caption: of the first table.
        names: published names of detectors.
        tune: AUCs on the `tune` rows, by which the best detector of a column is marked if its
            interval is above 0.5; None marks none.
    """
    cells = {
        head: {name: None if row is None else Estimate.of(row) for name, row in rows.items()}
        for head, rows in columns.items()
    }
    usual = {head: _usual_rows(column) for head, column in cells.items()}
    first = {
        head: next(iter(rank_detectors(column, tune)), "") if tune is not None else ""
        for head, column in cells.items()
    }
    heads = {
        head: AxisHeading(head, note=_counts_text(column.values(), usual[head]))
        for head, column in cells.items()
    }

    def counted(name: str, head: str) -> str:
        cell = cells[head][name]
        if cell is None or (cell.members, cell.nonmembers) == usual[head]:
            return ""
        return f"{cell.members:,} + {cell.nonmembers:,}"

    def is_best(name: str, head: str) -> bool:
        cell = cells[head][name]
        return name == first[head] and cell is not None and cell.low > 0.5

    crossed = cross(
        ((name, head) for name in detectors for head in columns),
        lambda item: AxisHeading(names.get(item[0], item[0])),
        lambda item: heads[item[1]],
        unit=AUC,
        cell=lambda item: columns[item[1]][item[0]],
        bold=lambda item: is_best(*item),
        counted=lambda item: counted(*item),
    )
    return crossed.tables(title, "Detector", caption)


def _usual_rows(cells: Mapping[str, Estimate | None]) -> tuple[int, int]:
    measured = {name: cell for name, cell in cells.items() if name not in MODEL_FREE}
    return common_rows(measured if any(measured.values()) else cells)


def _counts_text(cells: Iterable[Estimate | None], usual: tuple[int, int]) -> str:
    seeds = [cell.seeds for cell in cells if cell and (cell.members, cell.nonmembers) == usual]
    return f"{usual[0]:,} + {usual[1]:,}, {with_noun(max(seeds), 'seed')}" if seeds else ""


def doublings(value: float) -> float:
    """Return the position of a number on an axis of doublings that has a 0."""
    return log2(1 + value)
