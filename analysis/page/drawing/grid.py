"""A grid of numbers as shaded cells: the AUC of a detector over two of its settings.

Cells above chance are grey, below it blue, the fainter the nearer. Numbers are written where they
have room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from markupsafe import Markup

from analysis.page.drawing.elements import Drawing, both_sizes, box, element, hovered, text

_CHANCE = 0.5
_CELL = 26.0
_STRONGEST = 0.45
"""How opaque the cell is that is farthest from chance: ink stands out on it in both schemes."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A picture of cells; what is not in it is blank."""

    rows: Sequence[str]
    """From the top down."""
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], float]
    """AUCs by row and column."""
    frames: Mapping[tuple[str, str], str]
    """The class of the frame of a cell."""
    row_label: str
    column_label: str
    label: str
    """What it shows, for readers who do not see it."""

    def draw(self, width: float) -> Drawing:
        """Return the picture for a column of a width, and for a phone."""
        return both_sizes(self._draw, width, self.label)

    def numbers(self) -> list[dict[str, object]]:
        """Return what is drawn, a row a cell."""
        return [
            {self.row_label: row, self.column_label: column, "value": value}
            for (row, column), value in self.cells.items()
        ]

    def _draw(self, width: float, _: bool) -> tuple[Markup, float]:
        left, top = 36.0, 18.0
        across = min(46.0, (width - left) / len(self.columns))
        bottom = top + _CELL * len(self.rows)
        marks = [text(0, 11, f"{self.row_label} ↓   {self.column_label} →", "m sm")]
        reach = max((abs(value - _CHANCE) for value in self.cells.values()), default=0) or 1.0
        for row, name in enumerate(self.rows):
            marks.append(text(left - 6, top + (row + 0.65) * _CELL, name, "m xs", "end"))
            for at, column in enumerate(self.columns):
                value = self.cells.get((name, column), float("nan"))
                x, y = left + at * across, top + row * _CELL
                if isfinite(value):
                    marks.append(self._cell(x, y, across, name, column, value, reach))
        for at, column in enumerate(self.columns):
            marks.append(text(left + (at + 0.5) * across, bottom + 13, column, "m xs", "middle"))
        for (name, column), cls in self.frames.items():
            x, y = left + self.columns.index(column) * across, top + self.rows.index(name) * _CELL
            marks.append(box(x, y, across, _CELL, cls))
        return Markup("").join(marks), bottom + 20

    def _cell(
        self, x: float, y: float, across: float, row: str, column: str, value: float, reach: float
    ) -> Markup:
        shade = element(
            "rect", x=x, y=y, width=across - 1, height=_CELL - 1,
            cls="hot" if value >= _CHANCE else "cold",
            fill_opacity=f"{_STRONGEST * abs(value - _CHANCE) / reach:.3f}",
        )  # fmt: skip
        number = f"{value:.2f}".removeprefix("0")
        written = text(x + across / 2, y + 17, number, "n xs", "middle") if across >= 22 else ""
        hover = f"{self.row_label} {row}, {self.column_label} {column}: AUC {value:.2f}"
        return hovered(hover, shade, Markup(written))
