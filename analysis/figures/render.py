"""Draws any figure in one look, to deterministic files: two drawings, their numbers, their words.

Text is drawn as paths, so a figure looks the same in any browser; `$` in names stays a dollar sign.
The same data give the same bytes (fixed hash salt, no dates). Only `matplotlib.figure` is used: no
pyplot, hence no global figures and no display. Cost: 0.3 s a figure.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from analysis.figures.labels import (
    DASHES,
    WIDTH,
    broken,
    fitted,
    look,
    name_series,
    rise,
    sample,
)
from analysis.figures.panel import (
    GRID,
    INK,
    MUTED,
    PALETTE,
    PAPER,
    Axis,
    Cells,
    Figure,
    Panel,
    Row,
    Series,
)
from inject.files import write_text
from inject.tables import csv_text

_ON_LIGHT, _ON_DARK, _WHITE = "#15191d", "#fdfdfd", "#fefefe"
"""Of cells: letters on light and on dark ground, and the ground at chance. The ground is the same
on a dark page, so these are no colours of the page, which turn with it."""
_RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "figure.facecolor": PAPER,
    "figure.labelsize": 10,
    "axes.facecolor": PAPER,
    "legend.frameon": False,
    "savefig.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "svg.fonttype": "path",
    "svg.hashsalt": "spikein",
    "path.simplify": True,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style; matplotlib's settings are restored afterwards."""
    import matplotlib

    with matplotlib.rc_context(_RC):
        yield


def write_drawing(figure: Figure, *paths: Path) -> None:
    """Draw a figure and write it as SVG or PNG, as the names of the files say."""
    formats: dict[str, dict[str, Any]] = {
        ".svg": {"dpi": 200, "metadata": {"Date": None, "Creator": None}},
        ".png": {"dpi": 160, "metadata": {"Software": None}},
    }
    with house_style():
        canvas = draw(figure)
        # The layout is solved once; solving it again for each file costs a third of the time.
        canvas.set_layout_engine("none")
        for path in paths:
            canvas.savefig(path, **formats[path.suffix])


def draw(figure: Figure) -> Any:
    """Return a figure as matplotlib's, laid out; within `house_style`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    count = len(figure.panels)
    columns = figure.columns or (2 if count == 4 else min(3, count))
    rows = -(-count // columns)
    above = max(map(rise, figure.panels))
    height = rows * (figure.height + above) + 0.3 * bool(figure.key) + 0.3 * bool(figure.x)
    canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(canvas)
    grid = canvas.subplots(
        rows, columns, squeeze=False, sharex="x" in figure.shared, sharey="y" in figure.shared
    )
    axes = list(grid.ravel())
    for surplus in axes[count:]:
        surplus.set_visible(False)
    for at, (axes_, panel) in enumerate(zip(axes, figure.panels, strict=False)):
        _draw_panel(axes_, panel, columns)
        if panel.cells is not None:
            _draw_cells(canvas, axes_, panel.cells)
        if at + columns >= count:
            axes_.tick_params(labelbottom=True)
    canvas.supxlabel(figure.x)
    canvas.supylabel(textwrap.fill(figure.y, int(height / 0.09)))
    if figure.key:
        canvas.legend(
            handles=[sample(series) for series in figure.key], loc="outside upper right",
            ncols=min(3, len(figure.key)), handlelength=3.2,
        )  # fmt: skip
    # Names are placed once the scale of every panel is known.
    canvas.draw_without_rendering()
    for axes_, panel in zip(axes, figure.panels, strict=False):
        name_series(axes_, panel, columns)
    canvas.draw_without_rendering()
    return canvas


def _draw_panel(axes: Any, panel: Panel, columns: int) -> None:
    # Limits are found by the scale that there is when points are drawn.
    axes.set_xscale(**_scale(panel.x))
    axes.set_yscale(**_scale(panel.y))
    for series in panel.series:
        _draw_series(axes, series)
    for rule in panel.rules:
        line = axes.axvline if rule.axis == "x" else axes.axhline
        line(rule.at, color=MUTED, linewidth=1, linestyle=DASHES[rule.line], zorder=1)
    pad = 18 + 72 * rise(panel) if rise(panel) else None
    axes.set_title(broken(panel.title, columns), pad=pad, fontsize=9.5 if columns > 3 else None)
    _draw_axis(axes, "x", panel.x, columns)
    _draw_axis(axes, "y", panel.y, columns)
    _mark_beyond(axes, panel)
    if panel.square:
        axes.set_box_aspect(1)
    if panel.note:
        axes.text(0.985, 0.09, panel.note, transform=axes.transAxes, ha="right", fontsize=8.5)


def _draw_series(axes: Any, series: Series) -> None:
    """Draw intervals, line and marks."""
    x, y = np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
    if len(series.low):
        low, high = np.asarray(series.low, dtype=float), np.asarray(series.high, dtype=float)
        bars = {"colors": series.colour, "linewidth": min(series.width, 3.2), "zorder": 2}
        if series.interval == "x":
            axes.hlines(y, low, high, **bars)
        elif series.interval == "y":
            axes.vlines(x, low, high, **bars)
        else:
            alpha = 0.35 if series.interval == "area" else 0.12
            axes.fill_between(x, low, high, color=series.colour, alpha=alpha, linewidth=0)
    if not (series.line or series.mark) or not len(x):
        return
    rug = series.mark == "|"
    axes.plot(
        x, y, linewidth=series.width, alpha=0.4 if rug else None, **look(series),
        markeredgewidth=0.7 if rug else 1.2, rasterized=rug and len(x) > 200,
        drawstyle="steps-post" if series.steps else "default", zorder=2 if series.line else 3,
    )  # fmt: skip


def _mark_beyond(axes: Any, panel: Panel) -> None:
    """Mark points left or right of a panel by a triangle at its edge."""
    low, high = panel.x.limits or (-inf, inf)
    for series in panel.series:
        if series.mark and not series.line:
            for x, y in zip(series.x, series.y, strict=True):
                if not low <= x <= high:
                    axes.plot(
                        [low if x < low else high], [y], marker="<" if x < low else ">",
                        color=series.colour, markersize=6, clip_on=False, zorder=3,
                    )  # fmt: skip


def _scale(axis: Axis) -> dict[str, Any]:
    if axis.scale == "doses":
        return {"value": "symlog", "base": 2, "linthresh": 1, "linscale": 1}
    if axis.scale == "symlog":
        return {"value": "symlog", "linthresh": axis.linear, "linscale": 0.5}
    return {"value": axis.scale}


def _draw_axis(axes: Any, side: str, axis: Axis, columns: int) -> None:
    """Write ticks and label of one side of a panel."""
    drawn = axes.xaxis if side == "x" else axes.yaxis
    last = len(axis.names) - 1
    set_limits = axes.set_xlim if side == "x" else axes.set_ylim
    if axis.names:
        set_limits(*((-0.6, last + 0.6) if side == "x" else (last + 0.6, -0.6)))
        axes.grid(False, axis=side)
        drawn.set_ticks(range(len(axis.names)), fitted(axis.names, side, columns))
        drawn.set_tick_params(length=0, labelsize=10 if columns < 3 and side == "y" else 8.5)
    else:
        axes.grid(True, axis=side)
        _numbers(axes, side, axis, columns)
    if axis.limits is not None:
        set_limits(*axis.limits)
    if axis.label:
        drawn.set_label_text(axis.label)


def _numbers(axes: Any, side: str, axis: Axis, columns: int) -> None:
    """Place the ticks of an axis of numbers; those that are given as far as their texts fit."""
    drawn = axes.xaxis if side == "x" else axes.yaxis
    if axis.ticks:
        ticks = sorted(axis.ticks)
        places = drawn.get_transform().transform(ticks)
        inches = 0.3 if side == "y" else 0.1 + 0.08 * max(map(len, axis.ticks.values()))
        gap = (places[-1] - places[0]) * inches / (WIDTH / columns - 1.2)
        kept = [0]
        for at, place in enumerate(places):
            if place - places[kept[-1]] > gap:
                kept.append(at)
        drawn.set_ticks([ticks[at] for at in kept], [axis.ticks[ticks[at]] for at in kept])
        drawn.set_ticks([], minor=True)
    elif axis.scale == "linear":
        axes.locator_params(axis=side, nbins=max(4, 8 - columns) if side == "x" else 7)
        if axis.text is not None:
            drawn.set_major_formatter(lambda value, _: axis.text(value))


def _draw_cells(canvas: Any, axes: Any, cells: Cells) -> None:
    """Draw cells of AUCs: white at chance, blue below, orange above."""
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

    reach = max(0.02, float(np.nanmax(np.abs(cells.values - 0.5))))
    ramp = LinearSegmentedColormap.from_list("auc", [PALETTE[1], _WHITE, PALETTE[0]], bad=GRID)
    axes.grid(False)
    image = axes.imshow(
        np.ma.masked_invalid(cells.values), cmap=ramp, aspect="auto",
        norm=TwoSlopeNorm(0.5, 0.5 - reach, 0.5 + reach),
    )  # fmt: skip
    _write_cells(axes, cells, reach)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = canvas.colorbar(image, ax=axes, pad=0.015, aspect=30, label=cells.meaning)
    bar.outline.set_visible(False)


def _write_cells(axes: Any, cells: Cells, reach: float) -> None:
    """Write the numbers into their cells, and frame those that are marked."""
    from matplotlib.patches import Rectangle

    size = 8 if cells.values.shape[1] <= 12 else 7
    for row, column in np.argwhere(np.isfinite(cells.values)):
        value = cells.values[row, column]
        axes.text(
            column, row, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=size,
            color=_ON_DARK if abs(value - 0.5) > 0.92 * reach else _ON_LIGHT,
        )  # fmt: skip
    for (row, column), dashes in cells.frames.items():
        solid = dashes == "solid"
        axes.add_patch(Rectangle(
            (column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=INK, clip_on=False,
            linewidth=2.2 if solid else 1.4, linestyle=DASHES[dashes], zorder=4 if solid else 3,
        ))  # fmt: skip


FIGURES = "figures.json"


@dataclass(frozen=True, kw_only=True)
class ReportFigure:
    """One finished figure; what it says is `analysis.figures.panel.Figure`'s."""

    name: str
    title: str
    caption: str
    alternative: str
    files: tuple[Path, ...]
    """The drawing as SVG and as PNG, and the numbers that are drawn, if any, as CSV."""

    @property
    def svg(self) -> Path:
        """The drawing, for the page."""
        return self.files[0]


def write_figures(out: Path, figures: Iterable[Figure]) -> list[ReportFigure]:
    """Write figures/NAME.svg, .png and .csv below a folder, and which there are."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write_figure(figure, folder) for figure in figures]
    record = [
        {**asdict(figure), "files": [path.name for path in figure.files]} for figure in written
    ]
    (out / FIGURES).write_text(json.dumps(record, indent=1))
    return written


def read_figures(out: Path) -> list[ReportFigure]:
    """Return the figures of a folder."""
    return [
        ReportFigure(**{**entry, "files": tuple(out / "figures" / name for name in entry["files"])})
        for entry in json.loads((out / FIGURES).read_text())
    ]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV (RFC 4180, UTF-8).

    Columns stand in the order in which they first appear; what a row lacks is empty, NaN too.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    write_text(path, csv_text(names, ([row.get(name) for name in names] for row in rows)))


def _write_figure(figure: Figure, folder: Path) -> ReportFigure:
    files = tuple(folder / f"{figure.name}{form}" for form in (".svg", ".png", ".csv"))
    write_drawing(figure, *files[:2])
    if figure.rows:
        write_rows(files[2], figure.rows)
    said = {key: getattr(figure, key) for key in ("name", "title", "caption", "alternative")}
    return ReportFigure(**said, files=files if figure.rows else files[:2])
