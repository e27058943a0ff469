"""AUC against the realised number of copies, one panel for each setting of the other axes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.arm import Cohort, short_axis
from analysis.copies import copies_order, is_dose
from analysis.figures.style import (
    INK,
    WIDTH,
    ReportFigure,
    chance_line,
    colours,
    finish,
    new_figure,
    panel_columns,
    panel_title,
    panels,
    spread_labels,
    styled,
)
from analysis.lookup import Cell, MetricsOf

MOST_PANELS = 6


def draw_copies(
    folder: Path, tables: Sequence[MetricsOf], emphasised: Sequence[str]
) -> ReportFigure | None:
    """Draw lines with bands for arms with several doses, diamonds for arms with one.

    Returns None where fewer than two doses have enough members.
    """
    grouped: dict[str, list[MetricsOf]] = {}
    for table in tables:
        if any(is_dose(label) for label in table.values("copies")):
            grouped.setdefault(_other_axes(table.cohort), []).append(table)
    labels = sorted(
        {label for table in tables for label in table.values("copies") if is_dose(label)},
        key=copies_order,
    )
    if len(labels) < 2:
        return None
    shown = list(grouped.items())[:MOST_PANELS]
    colour = colours(emphasised, emphasised)
    columns = panel_columns(len(shown))
    # Room for the names behind the lines: a bold letter is about 0.09 inches wide.
    names = 0.09 * max(len(name) for name in emphasised) / (WIDTH / columns - 0.7)
    right = (len(labels) - 0.45) / (1 - min(names, 0.6))
    with styled():
        figure = new_figure(0.5 + 3.3 * -(-len(shown) // columns))
        axes = panels(figure, len(shown), columns=columns)
        for axis, (title, same) in zip(axes, shown, strict=True):
            chance_line(axis, vertical=False)
            ends: list[tuple[str, float]] = []
            for detector in emphasised:
                last = None
                for table in same:
                    last = _draw(axis, table, detector, labels, colour[detector]) or last
                if last is not None:
                    ends.append((detector, last.value))
            heights = spread_labels([value for _, value in ends], 0.042)
            for (detector, _), height in zip(ends, heights, strict=True):
                axis.text(
                    len(labels) - 0.75, height, detector, color=colour[detector],
                    fontsize=8.5, fontweight="bold", va="center",
                )  # fmt: skip
            axis.set_xticks(range(len(labels)), labels)
            axis.set_xlim(-0.3, right)
            panel_title(axis, title, columns=columns)
            axis.grid(True, axis="y")
        for axis in axes[-columns:]:
            axis.set_xlabel("Realised copies")
        for axis in axes[::columns]:
            axis.set_ylabel("AUC")
        rest = len(grouped) - len(shown)
        caption = (
            "Lines with 95 % bands: arms in which members drew different numbers of copies, "
            "each number against all non-members (0: members that drew none). Diamonds: arms "
            "with one fixed dose. Tuned settings, all datasets pooled. "
            + _counts(tables, emphasised)
        )
        if rest > 0:
            caption += f" {rest} further combinations are in the tables."
        return finish(
            figure, folder, name="copies", title="AUC against the number of copies", caption=caption
        )


def _draw(
    axis: Any, table: MetricsOf, detector: str, labels: Sequence[str], colour: str
) -> Cell | None:
    """Draw one detector of one arm and return the last point of its line."""
    points = [
        (at, cell)
        for at, label in enumerate(labels)
        if (cell := _cell(table, detector, label)) is not None and cell.available
    ]
    if len(points) == 1:
        at, cell = points[0]
        axis.plot([at, at], [cell.low, cell.high], color=colour, linewidth=1, alpha=0.7)
        axis.plot(
            [at], [cell.value], marker="D", markersize=5, markerfacecolor=colour,
            markeredgecolor=INK, markeredgewidth=0.8, linestyle="none", zorder=4,
        )  # fmt: skip
        return cell if at == len(labels) - 1 else None
    if not points:
        return None
    x = [at for at, _ in points]
    axis.fill_between(
        x, [c.low for _, c in points], [c.high for _, c in points], color=colour, alpha=0.11,
        linewidth=0,
    )  # fmt: skip
    axis.plot(x, [c.value for _, c in points], color=colour, linewidth=2, marker="o", markersize=4)
    return points[-1][1]


def _cell(table: MetricsOf, detector: str, label: str) -> Cell | None:
    tuned = table.get(detector, selection="tuned", copies=label)
    return tuned or table.get(detector, copies=label)


def _other_axes(cohort: Cohort) -> str:
    return ", ".join(
        f"{short_axis(key)} {value}"
        for key, value in cohort.axes
        if value and key.split(".")[0] != "copies"
    )


def _counts(tables: Sequence[MetricsOf], detectors: Sequence[str]) -> str:
    cells = [
        cell
        for table in tables
        for label in table.values("copies")
        if is_dose(label) and (cell := _cell(table, detectors[0], label)) is not None
    ]
    if not cells:
        return ""
    members = sorted(cell.n_members for cell in cells)
    seeds = max(cell.n_seeds for cell in cells)
    return (
        f"{members[0]:,} to {members[-1]:,} members a point, up to "
        f"{max(cell.n_nonmembers for cell in cells):,} non-members, "
        + ("one training seed." if seeds == 1 else f"{seeds} training seeds.")
    )
