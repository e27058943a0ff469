"""The elements of a page's pictures: escaped SVG, text that fits, a scale.

Letters are text in the page's own fonts, never scaled: a picture is drawn once for a column and
once for a phone, and the stylesheet shows one of the two. Colours are classes of `style.css`.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from math import ceil, floor, isfinite, log10
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup, escape

BOLD = 13.8
"""The size as which bold letters are counted."""
PHONE = 350
"""Width of the drawing for a phone of 390 pixels."""
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[] "), frozenset("mwMW@%+−=<>…")
_CONTROLS = {
    code: ascii(chr(code))[1:-1]
    # C0 but tab and newline, DEL and C1, what turns the direction of the text behind it, and the
    # two that no XML may contain.
    for span in ((0, 9), (11, 32), (127, 160), (0x202A, 0x202F), (0x2066, 0x206A), (0xFFFE, 65536))
    for code in range(*span)
}


def visible(value: Any) -> Any:
    """Return a text with its control characters written out; markup and all else as it is."""
    return value.translate(_CONTROLS) if type(value) is str else value


def dot_class(kind: str) -> str:
    """Return the class of a mark: of the chosen detector, of the baseline, or of any other."""
    return {"chosen": "do a", "baseline": "ho"}.get(kind, "do")


def element(name: str, content: Markup | str = "", /, **attributes: object) -> Markup:
    """Return an element; numbers are rounded to a tenth, `cls` is its class."""
    written = Markup("").join(
        Markup(' {}="{}"').format(
            {"cls": "class"}.get(key, key.replace("_", "-")),
            f"{value:.1f}" if isinstance(value, float) else value,
        )
        for key, value in attributes.items()
        if value is not None and value != ""
    )
    return Markup("<{}{}>{}</{}>").format(Markup(name), written, content, Markup(name))


def text(x: float, y: float, content: str, cls: str = "", anchor: str = "") -> Markup:
    """Return a line of text."""
    return element(
        "text", escape(visible(content)), x=float(x), y=float(y), cls=cls, text_anchor=anchor
    )


def paragraph(x: float, y: float, lines: Sequence[str], cls: str) -> list[Markup]:
    """Return lines of text below each other."""
    return [text(x, y + 13 * at, line, cls) for at, line in enumerate(lines)]


def path(points: Sequence[tuple[float, float]], cls: str, *, closed: bool = False) -> Markup:
    """Return straight lines through points; of those in one pixel's column the ends are drawn."""
    corners: list[tuple[float, float]] = []
    for _, same in groupby(points, key=lambda point: round(point[0])):
        column = list(same)
        if len(column) > 4:
            extremes = (pick(column, key=itemgetter(1)) for pick in (min, max))
            column = [column[0], *sorted(extremes), column[-1]]
        corners += column
    commands = "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    return element("path", cls=cls, d=f"M{commands}{'Z' if closed else ''}")


def box(x: float, y: float, width: float, height: float, cls: str) -> Markup:
    """Return a filled rectangle."""
    return element(
        "rect", x=float(x), y=float(y), width=float(width), height=float(height), cls=cls
    )


def hovered(hover: str, *marks: Markup, cls: str = "") -> Markup:
    """Return marks that show a text when a pointer hovers over them."""
    title = element("title", escape(visible(hover)))
    return element("g", title + Markup("").join(marks), cls=f"c {cls}".strip())


class Drawing(NamedTuple):
    """A picture as SVG: for a column, which is also its file, and for a phone."""

    wide: Markup
    phone: Markup


def both_sizes(
    draw: Callable[[float, bool], tuple[Markup, float]], width: float, label: str
) -> Drawing:
    """Return a picture for a column and for a phone.

    Args:
        draw: returns the marks and the height of a width, and whether that is a phone's.
        width: of the column.
        label: what the picture shows, for readers who do not see it.
    """
    drawings = []
    for name, across in (("wide", width), ("phone", float(PHONE))):
        marks, height = draw(across, name == "phone")
        drawings.append(
            element(
                "svg",
                marks,
                cls=name,
                viewBox=f"0 0 {across:g} {height:g}",
                width=f"{across:g}",
                height=f"{height:g}",
                role="img",
                aria_label=visible(label),
            )
        )
    return Drawing(*drawings)


def text_width(content: str, size: float = 12) -> float:
    """Return about how wide a text is in a wide sans-serif font, DejaVu's; others are narrower."""
    ems = sum(
        0.37 if sign in _NARROW else 0.92 if sign in _WIDE else 0.72 if sign.isupper() else 0.64
        for sign in content
    )
    return ems * size


def clipped(content: str, width: float, size: float = 12) -> str:
    """Return as much of a text as fits."""
    if text_width(content, size) <= width:
        return content
    prefix = content
    while prefix and text_width(f"{prefix}…", size) > width:
        prefix = prefix[:-1]
    return f"{prefix.rstrip(' ,(')}…"


def wrapped(content: str, width: float, lines: int, size: float = 12) -> list[str]:
    """Return a text in at most this many lines; the rest is cut off."""
    rows: list[str] = [""]
    for word in content.split():
        longer = f"{rows[-1]} {word}".strip()
        if not rows[-1] or text_width(longer, size) <= width:
            rows[-1] = longer
        else:
            rows.append(word)
    if len(rows) > lines:
        rows = [*rows[: lines - 1], " ".join(rows[lines - 1 :])]
    return [clipped(row, width, size) for row in rows]


class Scale(NamedTuple):
    """From numbers to pixels."""

    low: float
    high: float
    start: float
    """The pixel of `low`."""
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a number; one beyond an end is at that end."""
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)


def round_limits(values: Sequence[float], step: float, *within: float) -> tuple[float, float]:
    """Return limits at multiples of a step that contain the finite values and some others."""
    finite = [value for value in values if isfinite(value)] + list(within)
    low, high = floor(min(finite) / step + 1e-9) * step, ceil(max(finite) / step - 1e-9) * step
    return (low, high) if low < high else (low - step, high + step)


def round_ticks(low: float, high: float) -> list[float]:
    """Return four to eight round numbers that span two others."""
    size = 10.0 ** floor(log10((high - low) / 4))
    step = next(step for step in (size, 2 * size, 5 * size, 10 * size) if (high - low) / step <= 6)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]
