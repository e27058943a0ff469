"""A figure as data: panels of series, of which each has its colour and its look.

`analysis.figures.render` draws any of them; fonts, sizes, ticks, keys and the places of labels are
decided there. Colours are Okabe and Ito's, which colour-blind readers can tell apart, darkened so
far that text in them stands out from paper as WCAG asks (4.5 to 1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

INK = "#1a2230"
MUTED = "#5a6473"
GRID = "#dcdfe4"
PAPER = "#ffffff"
FAINT = "#87919c"
PALETTE = ("#b8460b", "#0072b2", "#007f5c", "#a5548f")
LOOKS = (("solid", "o"), ("dashed", "s"), ("dotted", "^"), ("dashdot", "v"))
"""Dashes and marks of the lines of a panel: nobody needs colours to tell them apart."""
MAX_PANELS = 6

Scale = Literal["linear", "log", "symlog", "doses"]
Numbers = Sequence[float] | Any
"""Numbers, or an array of them."""
Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points that look alike."""

    x: Numbers
    y: Numbers
    low: Numbers = ()
    """Lower ends of the intervals; NaN where there is none."""
    high: Numbers = ()
    interval: Literal["band", "area", "x", "y"] = "band"
    """How intervals are drawn: a band, a stronger one, or bars along an axis."""
    label: str = ""
    """Its name, written where the panel says."""
    colour: str = INK
    line: str = ""
    """`solid`, `dashed`, `dotted` or `dashdot`; empty for points that no line joins."""
    steps: bool = False
    """Whether the line goes in steps."""
    mark: str = ""
    """Matplotlib's letter for the mark of a point; empty for none."""
    hollow: bool = False
    width: float = 2.0
    """Of lines and bars, in points."""
    size: float = 5.0
    """Of marks, in points."""


class Rule(NamedTuple):
    """A line across the panel at one number."""

    at: float
    axis: Literal["x", "y"]
    line: str = "dashed"


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What stands along one side of a panel."""

    label: str = ""
    scale: Scale = "linear"
    """`symlog` is linear up to `linear`; `doses` linear to 1, and by doublings beyond."""
    linear: float = 1.0
    limits: tuple[float, float] | None = None
    ticks: Mapping[float, str] | None = None
    """Where ticks stand as far as there is room, and what is written there."""
    text: Callable[[float], str] | None = None
    """How a number is written at a tick that the renderer places."""
    names: Sequence[str] = ()
    """Names in place of numbers: point n stands at the name number n, the first on top or left."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Numbers as coloured cells, row by row as the names of the panel's axes."""

    values: Any
    """[rows, columns]; NaN leaves a cell blank."""
    meaning: str
    """Of the numbers."""
    frames: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Row and column of framed cells, and the dashes of the frame."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes."""

    title: str = ""
    series: Sequence[Series] = ()
    cells: Cells | None = None
    x: Axis = Axis()
    y: Axis = Axis()
    rules: Sequence[Rule] = ()
    labels: Literal["ends", "corner", "above"] = "ends"
    """Where the names of the series stand: right of their ends, in the lower right corner, or
    slanted above the panel, each joined to its point."""
    note: str = ""
    """Stands in the lower right corner."""
    square: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Panels, and what is said of them."""

    name: str
    """File stem, and anchor in the page."""
    title: str
    caption: str
    """What is shown and how many examples and seeds stand behind it."""
    alternative: str
    """The same in words, for readers who do not see it: what stands where, with numbers."""
    panels: Sequence[Panel]
    rows: Sequence[Row] = ()
    """The numbers behind it, a row a point: what NAME.csv holds, never rounded."""
    height: float = 3.3
    """Inches of a row of panels."""
    columns: int = 0
    """Panels side by side; 0 for up to three, four as two by two."""
    shared: str = "xy"
    """The axes that all panels share."""
    x: str = ""
    """Label of all panels' x axes together."""
    y: str = ""
    key: Sequence[Series] = ()
    """Looks that are explained above the panels."""


def detector_colours(detectors: Sequence[str], emphasised: Sequence[str]) -> dict[str, str]:
    """Give the emphasised detectors a colour each, in order, and all others a faint grey."""
    colours = dict(zip(emphasised, PALETTE, strict=False))
    return {detector: colours.get(detector, FAINT) for detector in detectors}


def dose_colours(count: int) -> list[str]:
    """Return colours from blue (few copies) to vermilion (many)."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    ramp = LinearSegmentedColormap.from_list("dose", [PALETTE[1], "#96588a", PALETTE[0]])
    return [to_hex(ramp(at / max(1, count - 1))) for at in range(count)]


def tokens_label(value: float) -> str:
    """Return a number of tokens as an axis shows it: `300k`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
