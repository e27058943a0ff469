"""Small panels of lines side by side on one scale: AUC by copies, ROC curves, the training loss.

One panel shows one detector or arm, so no band hides another. A thin line may repeat the chosen
one in each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

from markupsafe import Markup

from analysis.page.drawing.elements import (
    BOLD,
    Drawing,
    Scale,
    both_sizes,
    clipped,
    dot_class,
    element,
    hovered,
    paragraph,
    path,
    text,
    text_width,
    wrapped,
)
from analysis.unit import Dot


class Line(NamedTuple):
    """Points that a line joins, from left to right."""

    points: Sequence[tuple[float, Dot]]
    """The position of each, and its number."""
    kind: str = ""
    """`chosen`, `baseline`, `ghost` (a thin repetition of the chosen one), `faint`, `points` (that
    no line joins), `strokes` (of which only the places count), or nothing."""
    marks: bool = True
    """Whether points have marks, whiskers, a band and their numbers."""


class LinePanel(NamedTuple):
    """One panel."""

    title: str
    lines: Sequence[Line]
    """The last is on top."""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Panels:
    """A picture of panels side by side."""

    panels: Sequence[LinePanel]
    x: Sequence[tuple[float, str]]
    """Ticks that all panels share."""
    y: Sequence[tuple[float, str]]
    centre: float
    """The number of `y` at which nothing is found: a stronger line."""
    x_label: str
    label: str
    """A description for readers who do not see it."""
    height: float = 264.0
    per_row: int = 5

    def draw(self, width: float) -> Drawing:
        """Return the picture for a column of a width, and for a phone."""
        return both_sizes(lambda across, phone: _draw(self, across, phone), width, self.label)

    def numbers(self) -> list[dict[str, object]]:
        """Return the drawn points, one row per point."""
        names = dict(self.x)
        return [
            {"panel": panel.title, "x": names.get(x, x), **dot.numbers()}
            for panel in self.panels
            for line in panel.lines
            if line.marks
            for x, dot in line.points
        ]


def _draw(figure: Panels, width: float, phone: bool) -> tuple[Markup, float]:
    per_row = min(len(figure.panels), figure.per_row)
    height = figure.height
    if phone and len(figure.panels) > 3:
        per_row, height = 3, 0.75 * height
    rows = [figure.panels[at : at + per_row] for at in range(0, len(figure.panels), per_row)]
    marks = []
    for at, panels in enumerate(rows):
        # The x-axis label appears only below the last row of panels.
        label = figure.x_label if at == len(rows) - 1 else ""
        row = replace(figure, height=height, x_label=label)
        markup = _row(row, panels, width, per_row)
        marks.append(element("g", markup, transform=f"translate(0 {at * height:g})"))
    return Markup("").join(marks), height * len(rows)


def _row(figure: Panels, panels: Sequence[LinePanel], width: float, per_row: int) -> Markup:
    left = max(text_width(label, 10.5) for _, label in figure.y) + 10
    across = (width - left) / per_row
    heads = [
        len(wrapped(panel.title, across - 14, 2, BOLD)) + bool(panel.note)
        for panel in figure.panels
        if panel.title
    ]
    top = 20.0 + 13 * max(heads) if heads else 14.0
    bottom = figure.height - 36
    lows, highs = (pick(value for value, _ in figure.y) for pick in (min, max))
    up = Scale(lows, highs, bottom, top)
    marks = []
    for value, label in figure.y:
        cls = "ch" if value == figure.centre else "gr"
        marks.append(path([(left, up(value)), (left + across * len(panels), up(value))], cls))
        marks.append(text(left - 6, up(value) + 4, label, "m xs", "end"))
    (first, left_label), (last, right_label) = figure.x[0], figure.x[-1]
    halves = [text_width(label, 10.5) / 2 for label in (left_label, right_label)]
    ends = max(12.0, halves[0] + 1), max(22.0, halves[1] + 4)
    for at, panel in enumerate(panels):
        start = left + at * across
        along = Scale(first, last, start + ends[0], start + across - ends[1])
        colour = "a" if panel.lines and panel.lines[-1].kind == "chosen" else ""
        titles = wrapped(panel.title, across - 14, 2, BOLD)
        marks += paragraph(start + 8, 12, titles, f"h {colour}".strip())
        if panel.note:
            note = clipped(panel.note, across - 10, 10.5)
            marks.append(text(start + 8, 13 + 13 * len(titles), note, "m xs"))
        marks += _ticks(figure, along, bottom)
        for line in panel.lines:
            marks += _line(line, along, up)
        for line in panel.lines:
            if line.marks and line.kind != "ghost":
                marks += _numbers(line, along, up)
    if figure.x_label:
        marks.append(
            text(left, figure.height - 4, clipped(figure.x_label, width - left, 10.5), "m xs")
        )
    return Markup("").join(marks)


def _ticks(figure: Panels, along: Scale, bottom: float) -> list[Markup]:
    """Return the labels below a panel as far as there is room; the last one is always there."""
    marks = []
    room = float("inf")
    for value, label in reversed(figure.x):
        x, half = along(value), text_width(label, 10.5) / 2
        if x + half < room - 3:
            marks.append(text(x, bottom + 14, label, "m xs", "middle"))
            room = x - half
    return marks


def _line(line: Line, along: Scale, up: Scale) -> list[Markup]:
    points = [(along(x), up(dot.value)) for x, dot in line.points]
    if line.kind == "ghost":
        return [path(points, "gh")]
    if line.kind == "strokes":
        strokes = sorted({f"M{x:.1f} {up.start:.0f}v-8" for x, _ in points})
        return [element("path", cls="fa", d="".join(strokes))]
    colour = " a" if line.kind == "chosen" else ""
    marks = []
    bounded = [(x, dot) for x, dot in line.points if isfinite(dot.low) and isfinite(dot.high)]
    if len(bounded) > 1 and line.kind not in ("faint", "points"):
        upper = [(along(x), up(dot.high)) for x, dot in bounded]
        lower = [(along(x), up(dot.low)) for x, dot in bounded]
        marks.append(path([*upper, *reversed(lower)], f"bd{colour}", closed=True))
    look = {"baseline": "ln da", "faint": "fa"}.get(line.kind, f"ln{colour}")
    if line.kind != "points":
        marks.append(path(points, look))
    if not line.marks:
        return marks
    for (x, y), (_, dot) in zip(points, line.points, strict=True):
        markup = []
        if isfinite(dot.low) and isfinite(dot.high):
            ends = [(x, up(dot.low)), (x, up(dot.high))]
            markup.append(path(ends, f"wh{colour}{' wk' if dot.doubtful else ''}"))
        markup.append(element("circle", cx=x, cy=y, r=3.4, cls=dot_class(line.kind)))
        markup.append(element("circle", cx=x, cy=y, r=12.0, cls="hit"))
        marks.append(hovered(dot.hover, *markup))
    return marks


def _numbers(line: Line, along: Scale, up: Scale) -> list[Markup]:
    """Write the last number of a line, the first, and those between if there is room."""
    marks = []
    taken: list[tuple[float, float, float]] = []
    last = len(line.points) - 1
    colour = " a" if line.kind == "chosen" else ""
    for at in dict.fromkeys([last, 0, *range(1, last)]):
        place, dot = line.points[at]
        if not dot.text or (last > 3 and at not in (0, last)):
            continue
        x, y = along(place), up(dot.value)
        number = f"{dot.text}†" if dot.doubtful else dot.text
        wide = text_width(number, 11)
        right, base, anchor = x - 7, y - 5, "end"
        if last and at == last:
            right, base = x + 6 + (0 if last > 1 else wide / 2), y - 9
            anchor = "end" if last > 1 else "middle"
        elif at == 0 and x + wide < along.end + 12:
            right, base, anchor = x + 6 + wide, y + 13, ""
        if any(
            right > left and right - wide < end and abs(base - height) < 12
            for left, end, height in taken
        ):
            continue
        taken.append((right - wide, right, base))
        left = {"end": right, "middle": right - wide / 2, "": right - wide}[anchor]
        marks.append(text(left, base, number, f"n hal{colour} sm", anchor))
    return marks
