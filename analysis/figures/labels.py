"""Names on a figure: where they stand without covering each other, and what they name."""

import itertools
import re
import textwrap
from collections.abc import Sequence
from math import inf
from typing import Any

from analysis.figures.panel import FAINT, INK, MUTED, PALETTE, PAPER, Panel, Series

WIDTH = 9.0
"""Inches of every figure; the page shows it at full width."""
_LETTER = 0.095
"""Inches of a bold letter of a title."""
_RISE = 0.048
"""Inches that a letter of a slanted name rises."""
DASHES: dict[str, Any] = {
    "": "none",
    "solid": "-",
    "dashed": (0, (5, 2)),
    "dotted": (0, (1.5, 1.5)),
    "dashdot": (0, (6, 2, 1.5, 2)),
}


def look(series: Series) -> dict[str, Any]:
    """Return what tells a series from others, as matplotlib has it."""
    return {
        "color": series.colour,
        "linestyle": DASHES[series.line],
        "marker": series.mark or "none",
        "markersize": series.size,
        "markerfacecolor": PAPER if series.hollow else series.colour,
    }


def sample(series: Series) -> Any:
    """Return what a key shows of a series."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=series.label, linewidth=min(series.width, 2.0), **look(series))


def fitted(names: Sequence[str], side: str, columns: int) -> list[str]:
    """Break long names of rows, and shorten each line under a column to its width."""
    if side == "y":
        return [textwrap.fill(name, 36, max_lines=2, placeholder="…") for name in names]
    letters = max(4, int((WIDTH / columns - 2.2) / len(names) / 0.085))
    short = [[line if len(line) <= letters else f"{line[: letters - 1]}…"
              for line in name.split("\n")] for name in names]  # fmt: skip
    return ["\n".join(lines) for lines in short]


def broken(text: str, columns: int) -> str:
    """Return a title on lines that a panel holds, broken behind `_`, `-` or a blank."""
    letters = int((WIDTH / columns - 0.5) / _LETTER)
    lines = [""]
    for part in re.findall(r"[^ _-]*[ _-]?", text):
        if len(lines[-1]) + len(part.rstrip()) > letters and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def name_series(axes: Any, panel: Panel, columns: int) -> None:
    """Write the names of the series that have one, where the panel says."""
    named = [series for series in panel.series if series.label and len(series.x)]
    if not named:
        return
    if panel.labels == "corner":
        legend = axes.legend(
            handles=[sample(series) for series in named], fontsize=8.5, loc="lower right",
            handlelength=1.4, labelspacing=0.3,
        )  # fmt: skip
        for text, series in zip(legend.get_texts(), named, strict=True):
            text.set_color(_letters(series))
    elif panel.labels == "above":
        _name_above(axes, named)
    else:
        _name_ends(axes, named, columns)


def _name_ends(axes: Any, named: Sequence[Series], columns: int) -> None:
    """Write each name right of the panel at the height of its line's end, in its colour."""
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [to_axes.transform((series.x[-1], series.y[-1]))[1] for series in named]
    gap = 0.17 / (axes.bbox.height / axes.figure.dpi)
    for series, height in zip(named, spread_labels(ends, gap, top=1.0), strict=True):
        axes.text(
            1.01, height, series.label, color=_letters(series), fontsize=8.5, fontweight="bold",
            va="center", transform=axes.transAxes,
            in_layout=0.012 * len(series.label) * columns < 1,
        )  # fmt: skip


def _letters(series: Series) -> str:
    """Return a series' colour for letters, for which colours off the palette are too faint."""
    if series.colour == FAINT:
        return MUTED
    return series.colour if series.colour in (*PALETTE, MUTED) else INK


def _name_above(axes: Any, named: Sequence[Series]) -> None:
    """Write the names above in the order of their points, joined to them by lines."""
    from matplotlib.patches import ConnectionPatch

    to_axes = axes.transData + axes.transAxes.inverted()
    places = [(series.x[0], series.y[0]) for series in named]
    gap = 0.24 / (axes.bbox.width / axes.figure.dpi)
    at_points = [to_axes.transform(place)[0] for place in places]
    for series, place, at in zip(
        named, places, spread_labels(at_points, gap, top=1.0), strict=True
    ):
        common = series.mark == "o"
        axes.text(
            at, 1.05, series.label, color=INK if common else series.colour, fontsize=8.5,
            fontweight="normal" if common else "bold", rotation=40, rotation_mode="anchor",
            va="center", transform=axes.transAxes,
        )  # fmt: skip
        line = ConnectionPatch(
            xyA=(at, 1.03), coordsA=axes.transAxes, xyB=place, coordsB=axes.transData,
            color=FAINT, linewidth=0.6, zorder=1, clip_on=False, in_layout=False,
        )  # fmt: skip
        axes.add_artist(line)


def rise(panel: Panel) -> float:
    """Return how many inches the names above a panel need."""
    if panel.labels != "above":
        return 0.0
    return 0.15 + _RISE * max((len(series.label) for series in panel.series), default=0)


def spread_labels(positions: Sequence[float], gap: float, *, top: float = inf) -> list[float]:
    """Move label positions apart until neighbours are `gap` away, keeping their order.

    Args:
        positions: where labels would stand.
        gap: the least distance.
        top: none stands above it.
    """
    order = sorted(range(len(positions)), key=lambda at: positions[at])
    placed = list(positions)
    for _ in range(200):
        moved = False
        for below, above in itertools.pairwise(order):
            lack = gap - (placed[above] - placed[below])
            if lack > 1e-9:
                placed[below] -= lack / 2
                placed[above] += lack / 2
                moved = True
        if not moved:
            break
    limit = top
    for at in reversed(order):
        placed[at] = min(placed[at], limit)
        limit = placed[at] - gap
    return placed
