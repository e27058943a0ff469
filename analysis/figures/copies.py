"""AUC against the realised number of copies, one panel for each setting of the other axes.

The axis is one of numbers, linear to 1 and by powers of two beyond: 0 is a dose like any other, and
doses stand as far apart as they are. Colours are detectors; arms of one panel differ in their
dashes, marks and a letter behind the detector's name, which a key explains.
"""

import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.arm import Cohort, arm_label
from analysis.copy_bins import copies_middle, copies_order, is_dose
from analysis.figures.captions import interval_text, range_text
from analysis.figures.data import cell_columns
from analysis.figures.style import (
    INK,
    LINE_LOOKS,
    MUTED,
    WIDTH,
    ReportFigure,
    detector_colours,
    draw_chance_line,
    house_style,
    new_figure,
    panel_columns,
    panel_title,
    panels,
    save_figure,
    spread_labels,
)
from analysis.metrics_table import Cell, CohortMetrics
from analysis.selection.ranking import reported_cell

MAX_PANELS = 6
_FIXED = "one dose"


class LineStyle(NamedTuple):
    """How the lines of one arm are drawn."""

    dashes: Any
    mark: str
    letter: str = ""
    """Stands behind the name of each of its lines; empty where one arm alone has lines."""


def draw_copies(
    folder: Path, tables: Sequence[CohortMetrics], emphasised: Sequence[str]
) -> ReportFigure | None:
    """Draw lines with bands for arms with several doses, diamonds for arms with one.

    Returns None where fewer than two doses have enough members.
    """
    grouped: dict[str, list[CohortMetrics]] = {}
    for table in tables:
        if _doses(table):
            grouped.setdefault(_other_axes(table.cohort), []).append(table)
    labels = {label for table in tables for label in _doses(table)}
    if len(labels) < 2:
        return None
    shown = list(grouped.items())[:MAX_PANELS]
    colour = detector_colours(emphasised, emphasised)
    looks = line_styles([table for _, same in shown for table in same])
    columns = panel_columns(len(shown))
    with house_style():
        figure = new_figure(0.8 + 3.3 * -(-len(shown) // columns))
        axes = panels(figure, len(shown), columns=columns)
        for axis, (title, same) in zip(axes, shown, strict=True):
            draw_chance_line(axis, vertical=False)
            ends: dict[tuple[str, str], tuple[float, float]] = {}
            for detector in emphasised:
                for table in same:
                    last = _draw(axis, table, detector, colour[detector], looks)
                    if last is not None:
                        name = (detector, _look(table, looks).letter)
                        ends[name] = max(ends.get(name, last), last)
            panel_title(axis, title, columns=columns)
            axis.grid(True, axis="y")
            axis.set_ylim(*_heights(tables, emphasised))
            _name_ends(axis, ends, colour)
        letters = any(look.letter for look in looks.values())
        longest = max(len(name) for name in emphasised) + 2 * letters
        _scale(axes, labels, longest, columns)
        for axis in axes[-columns:]:
            axis.set_xlabel("Realised copies")
        for axis in axes[::columns]:
            axis.set_ylabel("AUC")
        _key(figure, looks)
        rest = len(grouped) - len(shown)
        caption = (
            "Lines with 95 % bands: arms in which members drew different numbers of copies, "
            "each number against all non-members (0: members that drew none; a range of numbers "
            "stands at its middle). "
            + ("Diamonds: arms with one dose. " if _FIXED in looks else "")
            + f"Tuned settings, all datasets pooled. {_counts(tables, emphasised)}"
        )
        if rest > 0:
            caption += f" {rest} further combinations are in the tables."
        return save_figure(
            figure,
            folder,
            name="copies",
            title="AUC against the number of copies",
            caption=caption,
            alternative="Lines of AUC against realised copies. "
            + _alternative_text(shown, emphasised[0]),
            data=_rows(grouped, emphasised),
        )


def _rows(
    grouped: Mapping[str, Sequence[CohortMetrics]], detectors: Sequence[str]
) -> Iterator[dict[str, object]]:
    """Yield every point, of panels that are not drawn, too."""
    for title, same in grouped.items():
        for table in same:
            for label in _doses(table):
                for detector in detectors:
                    cell = reported_cell(table, detector, copies=label)
                    if cell is not None and cell.available:
                        yield {
                            "panel": title,
                            "arm": _dose_axis(table.cohort),
                            "detector": detector,
                            "setting": cell.setting,
                            "copies": label,
                            **cell_columns(cell),
                        }


def _doses(table: CohortMetrics) -> list[str]:
    labels = [label for label in table.values("copies") if is_dose(label)]
    return sorted(labels, key=copies_order)


def line_styles(tables: Sequence[CohortMetrics]) -> dict[str, LineStyle]:
    """Give each kind of dose that draws a line a look of its own, in order of appearance."""
    names = dict.fromkeys(_dose_axis(table.cohort) for table in tables if len(_doses(table)) > 1)
    letters = string.ascii_lowercase if len(names) > 1 else ""
    looks = {
        name: LineStyle(*LINE_LOOKS[at % len(LINE_LOOKS)], letters[at : at + 1])
        for at, name in enumerate(names)
    }
    if any(len(_doses(table)) == 1 for table in tables):
        looks[_FIXED] = LineStyle("none", "D")
    return looks


def _look(table: CohortMetrics, looks: Mapping[str, LineStyle]) -> LineStyle:
    return looks[_FIXED if len(_doses(table)) == 1 else _dose_axis(table.cohort)]


def _draw(
    axis: Any, table: CohortMetrics, detector: str, colour: str, looks: Mapping[str, LineStyle]
) -> tuple[float, float] | None:
    """Draw one detector of one arm and return the last point of its line."""
    points = [
        (copies_middle(label), cell)
        for label in _doses(table)
        if (cell := reported_cell(table, detector, copies=label)) is not None and cell.available
    ]
    if not points:
        return None
    x = [at for at, _ in points]
    if len(_doses(table)) == 1:
        at, cell = points[0]
        axis.plot([at, at], [cell.low, cell.high], color=colour, linewidth=1, alpha=0.7)
        axis.plot(
            [at], [cell.value], marker="D", markersize=5, markerfacecolor=colour,
            markeredgecolor=INK, markeredgewidth=0.8, linestyle="none", zorder=4,
        )  # fmt: skip
        return at, cell.value
    look = _look(table, looks)
    axis.fill_between(
        x, [c.low for _, c in points], [c.high for _, c in points], color=colour, alpha=0.11,
        linewidth=0,
    )  # fmt: skip
    axis.plot(
        x, [c.value for _, c in points], color=colour, linewidth=2, linestyle=look.dashes,
        marker=look.mark, markersize=4.5,
    )  # fmt: skip
    return x[-1], points[-1][1].value


def _scale(axes: Sequence[Any], labels: set[str], longest: int, columns: int) -> None:
    """Scale the shared axis, and leave room for names of so many letters behind the lines."""
    doses = sorted(copies_middle(label) for label in labels)
    # A bold letter is about 0.09 inches wide.
    names = 0.09 * longest / (WIDTH / columns - 0.7)
    for axis in axes:
        axis.set_xscale("symlog", base=2, linthresh=1, linscale=1)
        forward = axis.xaxis.get_transform()
        ends = forward.transform([doses[0], doses[-1]])
        width = (ends[1] - ends[0]) or 1.0
        margin = 0.06 * width
        right = ends[0] - margin + (width + 2 * margin) / (1 - min(names, 0.6))
        axis.set_xlim(*forward.inverted().transform([ends[0] - margin, right]))
        ticks = _ticks(doses, forward, max_count=9 - columns)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()


def _ticks(doses: Sequence[float], forward: Any, *, max_count: int) -> list[float]:
    """Return the doses that were drawn; of those too near to tell apart, the first."""
    places = forward.transform(list(doses))
    gap = (places[-1] - places[0]) / (3 * max_count)
    kept: list[int] = []
    for at, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= gap:
            kept.append(at)
    return [doses[at] for at in kept]


def _heights(tables: Sequence[CohortMetrics], emphasised: Sequence[str]) -> tuple[float, float]:
    cells = [
        cell
        for table in tables
        for label in _doses(table)
        for name in emphasised
        if (cell := reported_cell(table, name, copies=label)) is not None and cell.available
    ]
    low = min([0.5, *(cell.low for cell in cells)])
    high = max([0.5, *(cell.high for cell in cells)])
    margin = 0.05 * (high - low) or 0.05
    return low - margin, high + margin


def _name_ends(
    axis: Any,
    ends: Mapping[tuple[str, str], tuple[float, float]],
    colour: Mapping[str, str],
) -> None:
    """Write each line's detector, and its arm's letter, behind the last of its points."""
    low, high = axis.get_ylim()
    heights = spread_labels([height for _, height in ends.values()], 0.062 * (high - low), top=high)
    for ((detector, letter), (at, _)), height in zip(ends.items(), heights, strict=True):
        axis.annotate(
            f"{detector} {letter}".strip(), (at, height), xytext=(8, 0),
            textcoords="offset points", color=colour[detector], fontsize=8.5, fontweight="bold",
            va="center",
        )  # fmt: skip


def _key(figure: Any, looks: Mapping[str, LineStyle]) -> None:
    """Explain the arms' looks, where there are several."""
    from matplotlib.lines import Line2D

    if len(looks) < 2:
        return
    handles = [
        Line2D([], [], color=MUTED, linestyle=look.dashes, marker=look.mark,
               label=f"{look.letter}: {name}" if look.letter else name)
        for name, look in looks.items()
    ]  # fmt: skip
    figure.legend(
        handles=handles, loc="outside upper right", ncols=min(3, len(handles)), frameon=False,
        labelcolor=INK, handlelength=3.2,
    )  # fmt: skip


def _dose_axis(cohort: Cohort) -> str:
    """Return what the arm says of copies: what tells it from the others of its panel."""
    return ", ".join(v for key, v in cohort.axes if v and _is_copies(key)) or "copies"


def _other_axes(cohort: Cohort) -> str:
    return arm_label(pair for pair in cohort.axes if not _is_copies(pair[0]))


def _is_copies(key: str) -> bool:
    return key.split(".")[0] == "copies"


def _alternative_text(shown: Sequence[tuple[str, Sequence[CohortMetrics]]], detector: str) -> str:
    """Say what the first detector has at each dose, arm by arm."""
    descriptions = []
    for title, same in shown:
        for table in same:
            points = [
                f"{label}: {interval_text(cell.value, cell.low, cell.high)}"
                for label in _doses(table)
                if (cell := reported_cell(table, detector, copies=label)) is not None
                and cell.available
            ]
            head = ", ".join(part for part in (title, _dose_axis(table.cohort)) if part)
            descriptions.append(f"{head}, {detector} by copies, {'; '.join(points)}.")
    return " ".join(descriptions)


def _counts(tables: Sequence[CohortMetrics], detectors: Sequence[str]) -> str:
    cells: list[Cell] = [
        cell
        for table in tables
        for label in _doses(table)
        for name in detectors
        if (cell := reported_cell(table, name, copies=label)) is not None and cell.available
    ]
    if not cells:
        return ""
    seeds = max(cell.n_seeds for cell in cells)
    return (
        f"{range_text(cell.n_members for cell in cells)} members and "
        f"{range_text(cell.n_nonmembers for cell in cells)} non-members a point, "
        + ("one training seed." if seeds == 1 else f"{seeds} training seeds.")
    )
