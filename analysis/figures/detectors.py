"""AUC by detector with intervals: one panel an arm, default hollow, tuned filled."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.arm import MODEL_FREE
from analysis.figures.captions import describe_extremes, describe_sample_sizes
from analysis.figures.data import cell_columns
from analysis.figures.style import (
    INK,
    MUTED,
    PALETTE,
    PAPER,
    ReportFigure,
    draw_chance_line,
    house_style,
    new_figure,
    panel_columns,
    panel_title,
    panels,
    save_figure,
)
from analysis.metrics_table import Cell, CohortMetrics

MAX_PANELS = 12
MAX_DETECTORS = 16
"""More are too many rows for a page, and for its widest names."""


def draw_detectors(
    folder: Path, tables: Sequence[CohortMetrics], best: CohortMetrics
) -> ReportFigure:
    """Draw a dot plot of pooled AUCs, detectors sorted by their AUC in the arm `best`."""
    shown = list(tables[:MAX_PANELS])
    every = sorted(
        dict.fromkeys(name for table in shown for name in table.values("detector")),
        key=lambda name: (name not in MODEL_FREE, _height(best.get(name))),
    )
    names = strongest(every)
    columns = panel_columns(len(shown))
    rows = -(-len(shown) // columns)
    with house_style():
        figure = new_figure(0.75 + rows * (0.62 + 0.27 * len(names)))
        axes = panels(figure, len(shown), columns=columns)
        for axis, table in zip(axes, shown, strict=True):
            draw_chance_line(axis, vertical=True)
            for at, name in enumerate(names):
                _mark(axis, at + 0.13, table.get(name, selection="tuned"), True, name)
                _mark(axis, at - 0.13, table.get(name, selection="default"), False, name)
            axis.set_yticks(range(len(names)), names)
            axis.set_ylim(-0.6, len(names) - 0.4)
            axis.grid(True, axis="x")
            axis.tick_params(axis="y", length=0)
            panel_title(axis, table.cohort.label() or "contaminated", columns=columns)
        for axis in axes[-columns:]:
            axis.set_xlabel("AUC")
        _key(axes[0])
        drawn = {table.cohort.label(): _cells(table, names) for table in shown}
        rest = len(tables) - len(shown)
        caption = (
            "AUC over all members with at least one copy, with 95 % intervals (from "
            "influence values, summed by group). Filled: setting chosen on the tune split; hollow: "
            "the default. The dashed line is chance."
        )
        caption += f" {describe_sample_sizes([_marks(table, names) for table in shown])}"
        if len(names) < len(every):
            caption += f" The strongest of {len(every)} detectors, and loss; the tables have all."
        if rest > 0:
            caption += f" {rest} further arms are in the tables."
        descriptions = " ".join(
            f"{arm or 'The contaminated model'}: {describe_extremes(cells)}."
            for arm, cells in drawn.items()
        )
        return save_figure(
            figure,
            folder,
            name="detectors",
            title="AUC by detector",
            caption=caption,
            alternative=f"Dot plot of the AUC of {len(names)} detectors, tuned settings. "
            + descriptions,
            data=[
                {"arm": table.cohort.label(), "detector": name, "selection": selection,
                 "setting": cell.setting, **cell_columns(cell)}
                for table in tables
                for name in every
                for selection in ("tuned", "default")
                if (cell := table.get(name, selection=selection)) is not None
            ],
        )  # fmt: skip


def strongest(ordered: Sequence[str]) -> list[str]:
    """Return the detectors that are drawn, of all in rising order: the highest, and `loss`."""
    if len(ordered) <= MAX_DETECTORS:
        return list(ordered)
    drawn = set(ordered[-MAX_DETECTORS:])
    if "loss" in ordered and "loss" not in drawn:
        drawn = {*ordered[1 - MAX_DETECTORS :], "loss"}
    return [name for name in ordered if name in drawn]


def _marks(table: CohortMetrics, names: Sequence[str]) -> dict[str, Cell | None]:
    """Return every mark of a panel: a default setting can stand on other rows than the tuned."""
    marks: dict[str, Cell | None] = {}
    for name in names:
        marks[name] = table.get(name, selection="tuned")
        marks[f"{name} (default)"] = table.get(name)
    return marks


def _cells(table: CohortMetrics, names: Sequence[str]) -> dict[str, Cell | None]:
    return {name: table.get(name, selection="tuned") or table.get(name) for name in names}


def _mark(axis: Any, height: float, cell: Cell | None, tuned: bool, name: str) -> None:
    if cell is None or not cell.available:
        return
    colour = MUTED if name in MODEL_FREE else PALETTE[1] if not tuned else PALETTE[0]
    axis.plot([cell.low, cell.high], [height, height], color=colour, linewidth=1.6, zorder=2)
    axis.plot(
        [cell.value],
        [height],
        marker="o",
        markersize=5,
        markerfacecolor=colour if tuned else PAPER,
        markeredgecolor=colour,
        markeredgewidth=1.4,
        zorder=3,
    )


def _key(axis: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="-", color=PALETTE[0], label="tuned"),
        Line2D(
            [],
            [],
            marker="o",
            linestyle="-",
            color=PALETTE[1],
            label="default",
            markerfacecolor=PAPER,
        ),
    ]
    axis.figure.legend(
        handles=handles, loc="outside upper right", ncols=2, frameon=False, labelcolor=INK
    )


def _height(cell: Cell | None) -> float:
    return cell.value if cell is not None and cell.available else -1.0
