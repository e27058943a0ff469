"""A matrix of numbers: one row per detector (or arm, or check), and in each column a number, a dot
and its interval, all on one scale.

It is the one form for AUCs, for their differences and for what a check leaves room for. A grid is
that of one detector over two of its settings: shaded cells, above chance grey, below it blue, the
fainter the nearer, with numbers if they fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isfinite, nan
from typing import NamedTuple

from markupsafe import Markup

from analysis.page.drawing.elements import (
    BOLD,
    Drawing,
    Scale,
    both_sizes,
    box,
    clipped,
    dot_class,
    element,
    hovered,
    paragraph,
    path,
    round_limits,
    text,
    text_width,
    wrapped,
)
from analysis.unit import Dot

_TICKS = 18.0
_GAP = 10.0
_MIN_STRIP = 20.0
"""If intervals have less room than this on a phone, columns are below each other."""
_CHANCE = 0.5
_GRID_CELL = 26.0
_STRONGEST = 0.45
"""Opacity of the cell farthest from chance: ink is readable on it in both schemes."""


class AxisHeading(NamedTuple):
    """The head of a row or a column."""

    label: str
    kind: str = ""
    """`chosen`, `baseline`, `head` (of the rows below it), or nothing."""
    group: str = ""
    """The label that it shares with its neighbours: the head above theirs."""
    note: str = ""
    said: str = ""
    """The label in full, for tables and tooltips; if empty, the label."""
    name: str | None = None
    """Its name in a CSV file; None for the label in full."""
    at: float = 0.0
    """The position of a column on an axis of numbers."""
    rule: float = nan
    """The position of a dashed line down a column: the baseline's number."""

    @property
    def words(self) -> str:
        """The label in full, with what it shares."""
        return self.said or " ".join(filter(None, (self.group, self.label)))


Column = tuple[AxisHeading, Sequence[Dot | str | None]]
"""A head, and one entry per row; a text replaces a missing number."""


class MatrixAxis(NamedTuple):
    """The scale that all columns share."""

    low: float
    high: float
    centre: float
    """Where nothing is found: 0.5 of an AUC, 0 of a difference."""
    ticks: Sequence[tuple[float, str]]
    zone: tuple[float, float] | None = None
    """Shaded."""


def dot_ends(columns: Sequence[Column]) -> list[float]:
    """Return the ends of all intervals."""
    dots = [dot for _, places in columns for dot in places if isinstance(dot, Dot)]
    return [end for dot in dots for end in (dot.low, dot.high)]


def auc_axis(columns: Sequence[Column]) -> MatrixAxis:
    """Return the scale of AUCs: from 0.4, or from below the lowest interval."""
    low, _ = round_limits(dot_ends(columns), 0.1, 0.4)
    return MatrixAxis(low, 1.0, 0.5, ((0.5, ".5"), (0.75, ".75"), (1.0, "1")))


def difference_axis(columns: Sequence[Column]) -> MatrixAxis:
    """Return the scale of differences in points, which contains them all and 0."""
    low, high = round_limits(dot_ends(columns), 10, 0)
    step = 10 if high - low <= 50 else 20
    places = [at for at in range(round(low), round(high) + 1) if at % step == 0]
    ticks = [(float(at), f"{at:+d}".replace("-", "−") if at else "0") for at in places]
    return MatrixAxis(low, high, 0.0, ticks)


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A picture of rows and columns."""

    rows: Sequence[AxisHeading]
    columns: Sequence[Column]
    axis: MatrixAxis
    label: str
    """What it shows, for readers who do not see it."""
    row_height: float = 18.0
    phone_columns: int = 4
    """So many are side by side on a phone; the rest goes below."""

    def draw(self, width: float) -> Drawing:
        """Return the picture for a column of a width, and for a phone."""

        def draw(across: float, phone: bool) -> tuple[Markup, float]:
            if not phone:
                return _draw(self, across, phone)
            step, marks, below = self.phone_columns, Markup(""), 0.0
            while step > 1 and _too_narrow(replace(self, columns=self.columns[:step]), across):
                step -= 1
            for at in range(0, len(self.columns), step):
                columns = self.columns[at : at + step]
                markup, height = _draw(replace(self, columns=columns), across, phone)
                marks += element("g", markup, transform=f"translate(0 {below:g})")
                below += height + (_GAP if at + step < len(self.columns) else 0)
            return marks, below

        return both_sizes(draw, width, self.label)

    def numbers(self) -> list[dict[str, object]]:
        """Return the drawn numbers, one row per number."""
        return [
            {"row": row.label, "column": f"{head.group} {head.label}".strip(), **dot.numbers()}
            for head, dots in self.columns
            for row, dot in zip(self.rows, dots, strict=True)
            if isinstance(dot, Dot)
        ]


def _size(row: AxisHeading) -> float:
    return BOLD if row.kind == "head" else 12.0


class _Place(NamedTuple):
    """The position of a column."""

    left: float
    right: float
    number: float
    """Right edge of its numbers."""
    scale: Scale

    @property
    def width(self) -> float:
        return self.right - self.left


def _label_width(matrix: Matrix, width: float) -> float:
    widest = max((text_width(row.label, _size(row)) for row in matrix.rows), default=0.0) + 8
    return min(widest, 0.3 * width if len(matrix.columns) > 1 else 0.42 * width)


def _too_narrow(matrix: Matrix, width: float) -> bool:
    """Return whether intervals have too little room on a phone."""
    places = _places(matrix, _label_width(matrix, width), width, phone=True)
    return any(place.scale.end - place.scale.start < _MIN_STRIP for place in places)


def _draw(matrix: Matrix, width: float, phone: bool) -> tuple[Markup, float]:
    labels = _label_width(matrix, width)
    places = _places(matrix, labels, width, phone)
    heads, top = _heads(matrix, places, phone)
    bottom = top + matrix.row_height * len(matrix.rows)
    marks = [*heads, *_ground(matrix, top, width)]
    for (head, _), place in zip(matrix.columns, places, strict=True):
        marks += _scale_marks(matrix.axis, place, top, bottom, head.rule)
    for at, row in enumerate(matrix.rows):
        middle = top + (at + 0.5) * matrix.row_height
        colour = "a" if row.kind == "chosen" else ""
        visible_label = clipped(row.label, labels - 8, _size(row))
        weight = "h" if row.kind == "head" else "t"
        label = text(labels - 8, middle + 4, visible_label, f"{weight} {colour}".strip(), "end")
        marks.append(label if visible_label == row.label else hovered(row.label, label))
        for (_, dots), place in zip(matrix.columns, places, strict=True):
            marks += _cell(row.kind, dots[at], place, middle, matrix.row_height)
    return Markup("").join(marks), bottom + _TICKS


def _places(matrix: Matrix, labels: float, width: float, phone: bool) -> list[_Place]:
    gap = 4.0 if phone else _GAP
    across = (width - labels + gap) / max(1, len(matrix.columns)) - gap
    places = []
    for at, (_, dots) in enumerate(matrix.columns):
        left = labels + at * (across + gap)
        numbers = [text_width(_number(dot)) for dot in dots if isinstance(dot, Dot)]
        number = left + max(numbers, default=0.0) + 2
        axis = matrix.axis
        edge = max(6.0, text_width(axis.ticks[-1][1], 10.5) / 2)
        scale = Scale(axis.low, axis.high, number + 10, left + across - edge)
        places.append(_Place(left, left + across, number, scale))
    return places


def _heads(matrix: Matrix, places: Sequence[_Place], phone: bool) -> tuple[list[Markup], float]:
    """Return the heads of groups and columns, and the top of the rows."""
    marks: list[Markup] = []
    y = 12.0
    columns = [(head, place) for (head, _), place in zip(matrix.columns, places, strict=True)]
    if any(head.group for head, _ in columns):
        groups = []
        for group, same in groupby(columns, key=lambda pair: pair[0].group):
            inside = [place for _, place in same]
            left, right = inside[0].left, inside[-1].right
            groups.append((left, right, wrapped(group, right - left - 4, 2, BOLD)))
        deepest = max(len(lines) for *_, lines in groups)
        for left, right, lines in groups:
            marks += paragraph(left, y + 13 * (deepest - len(lines)), lines, "h")
            under = y + 13 * (deepest - 1) + 5
            marks.append(path([(left, under), (right, under)], "ax"))
        y += 13 * (deepest - 1) + 19
    size = 11.0 if phone else 12.0
    most = 3 if phone else 2
    heads = [wrapped(head.label, place.width, most, size) for head, place in columns]
    notes = [wrapped(head.note, place.width, 2, 11) if head.note else [] for head, place in columns]
    deep = max((len(head) for head in heads if head != [""]), default=0)
    for place, head in zip(places, heads, strict=True):
        marks += paragraph(place.left, y, head, "sm" if phone else "t")
    y += 13 * deep
    for place, note in zip(places, notes, strict=True):
        marks += paragraph(place.left, y, note, "m sm")
    y += 13 * max(map(len, notes), default=0)
    return marks, y - 5


def _ground(matrix: Matrix, top: float, width: float) -> list[Markup]:
    """Return the stripes, and the band behind the chosen row."""
    return [
        box(0, top + at * matrix.row_height, width, matrix.row_height, cls)
        for at, row in enumerate(matrix.rows)
        if (cls := "hl" if row.kind == "chosen" else "zb" if at % 2 else "")
    ]


def _scale_marks(
    axis: MatrixAxis, place: _Place, top: float, bottom: float, rule: float
) -> list[Markup]:
    marks = []
    if axis.zone:
        low, high = (place.scale(end) for end in axis.zone)
        marks.append(box(low, top, high - low, bottom - top, "zone"))
    ends = float("-inf")
    for value, label in axis.ticks:
        x = place.scale(value)
        marks.append(path([(x, top), (x, bottom)], "ch" if value == axis.centre else "gr"))
        half = text_width(label, 10.5) / 2
        if x - half > ends + 3:
            marks.append(text(x, bottom + 12, label, "m xs", "middle"))
            ends = x + half
    if isfinite(rule):
        x = place.scale(rule)
        marks.append(path([(x, top), (x, bottom)], "rf"))
    return marks


def _number(dot: Dot) -> str:
    return f"{dot.text}†" if dot.doubtful else dot.text


def _cell(
    kind: str, dot: Dot | str | None, place: _Place, middle: float, height: float
) -> list[Markup]:
    if dot is None or isinstance(dot, str):
        message = dot or "–"
        return [text(place.left, middle + 4, clipped(message, place.width), "m")]
    colour = " a" if kind == "chosen" else " k" if kind == "head" else ""
    marks = [box(place.left, middle - height / 2, place.width, height, "hit")]
    if isfinite(dot.low) and isfinite(dot.high):
        ends = [(place.scale(dot.low), middle), (place.scale(dot.high), middle)]
        marks.append(path(ends, f"wh{colour}{' wk' if dot.doubtful else ''}"))
    if isfinite(dot.value):
        marks.append(
            element("circle", cx=place.scale(dot.value), cy=middle, r=3.1, cls=dot_class(kind))
        )
    bold = " b" if dot.bold else ""
    marks.append(text(place.number, middle + 4, _number(dot), f"n{colour}{bold}", "end"))
    return [hovered(dot.hover, *marks)]


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
        """Return the drawn cells, one row per cell."""
        return [
            {self.row_label: row, self.column_label: column, "value": value}
            for (row, column), value in self.cells.items()
        ]

    def _draw(self, width: float, _: bool) -> tuple[Markup, float]:
        left, top = 36.0, 18.0
        across = min(46.0, (width - left) / len(self.columns))
        bottom = top + _GRID_CELL * len(self.rows)
        marks = [text(0, 11, f"{self.row_label} ↓   {self.column_label} →", "m sm")]
        reach = max((abs(value - _CHANCE) for value in self.cells.values()), default=0) or 1.0
        for row, name in enumerate(self.rows):
            marks.append(text(left - 6, top + (row + 0.65) * _GRID_CELL, name, "m xs", "end"))
            for at, column in enumerate(self.columns):
                value = self.cells.get((name, column), float("nan"))
                x, y = left + at * across, top + row * _GRID_CELL
                if isfinite(value):
                    marks.append(self._cell(x, y, across, name, column, value, reach))
        for at, column in enumerate(self.columns):
            marks.append(text(left + (at + 0.5) * across, bottom + 13, column, "m xs", "middle"))
        for (name, column), cls in self.frames.items():
            x = left + self.columns.index(column) * across
            y = top + self.rows.index(name) * _GRID_CELL
            marks.append(box(x, y, across, _GRID_CELL, cls))
        return Markup("").join(marks), bottom + 20

    def _cell(
        self, x: float, y: float, across: float, row: str, column: str, value: float, reach: float
    ) -> Markup:
        shade = element(
            "rect", x=x, y=y, width=across - 1, height=_GRID_CELL - 1,
            cls="hot" if value >= _CHANCE else "cold",
            fill_opacity=f"{_STRONGEST * abs(value - _CHANCE) / reach:.3f}",
        )  # fmt: skip
        number = f"{value:.2f}".removeprefix("0")
        written = text(x + across / 2, y + 17, number, "n xs", "middle") if across >= 22 else ""
        hover = f"{self.row_label} {row}, {self.column_label} {column}: AUC {value:.2f}"
        return hovered(hover, shade, Markup(written))
