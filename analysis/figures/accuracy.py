"""What the benchmark scores gained: both sides' change, and the excess of members, arm by arm."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.figures.captions import range_text
from analysis.figures.data import cell_columns
from analysis.figures.style import (
    INK,
    MUTED,
    PALETTE,
    ReportFigure,
    house_style,
    new_figure,
    save_figure,
)
from analysis.metrics_table import Cell
from analysis.task_accuracy.accuracy_gain import AccuracyGainRow, AccuracyGainTable

MAX_ARMS = 16


def draw_accuracy_gain(folder: Path, tables: Sequence[AccuracyGainTable]) -> ReportFigure | None:
    """Draw the change in accuracy by plain scores; None where there is no base model."""
    rows = [
        row
        for table in tables
        if table.scoring == "plain"
        for row in table.rows
        if any(cell is not None and cell.available for cell in row.changes)
    ]
    if not rows:
        return None
    shown = rows[:MAX_ARMS]
    with house_style():
        figure = new_figure(1.1 + 0.42 * len(shown))
        left, right = figure.subplots(1, 2, sharey=True)
        for at, row in enumerate(shown):
            excess, members, nonmembers = row.changes
            _mark(left, -at + 0.13, members, PALETTE[0])
            _mark(left, -at - 0.13, nonmembers, PALETTE[1])
            _mark(right, -at, excess, INK)
        for axis, title, x in (
            (left, "Change after training", "Accuracy after less accuracy before"),
            (right, "Excess of members", "Change of members less change of non-members"),
        ):
            axis.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            axis.set_title(title)
            axis.set_xlabel(x)
            axis.grid(True, axis="x")
            axis.tick_params(axis="y", length=0)
        left.set_yticks([-at for at in range(len(shown))], [_name(row) for row in shown])
        left.set_ylim(0.6 - len(shown), 0.6)
        _key(left)
        rest = len(rows) - len(shown)
        caption = (
            "Share of right answers (plain scores, each dataset counted once), with 95 % "
            "intervals: members and non-members are asked before and after training. What both "
            "sides gain is practice; the excess is what having seen the questions is worth. "
            f"{_counts(shown)}"
        )
        if rest > 0:
            caption += f" {rest} further arms are in the table."
        return save_figure(
            figure,
            folder,
            name="accuracy-gain",
            title="What the benchmark scores gained",
            caption=caption,
            alternative="Dot plot of the excess of members over non-members in accuracy. "
            + " ".join(_alternative_text(row) for row in shown),
            data=[
                {"arm": row.arm, "dataset": row.dataset, "change": name, **cell_columns(cell)}
                for row in rows
                for name, cell in zip(("excess", "members", "nonmembers"), row.changes, strict=True)
                if cell is not None
            ],
        )


def _alternative_text(row: AccuracyGainRow) -> str:
    excess = row.changes[0]
    if excess is None or not excess.available:
        return f"{row.arm or 'All arms'}: no excess."
    return (
        f"{row.arm or 'All arms'}: {excess.value:+.2f} ({excess.low:+.2f} to {excess.high:+.2f})."
    )


def _name(row: AccuracyGainRow) -> str:
    return row.arm.replace(", ", "\n", row.arm.count(", ") // 2 or 1) if row.arm else "all arms"


def _mark(axis: Any, height: float, cell: Cell | None, colour: str) -> None:
    if cell is None or not cell.available:
        return
    axis.plot([cell.low, cell.high], [height, height], color=colour, linewidth=1.6, zorder=2)
    axis.plot([cell.value], [height], marker="o", markersize=5, color=colour, zorder=3)


def _key(axis: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker="o", markersize=5, linewidth=1.6, label=name)
        for name, colour in (("members", PALETTE[0]), ("non-members", PALETTE[1]))
    ]
    axis.figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False)


def _counts(rows: Sequence[AccuracyGainRow]) -> str:
    """Say how many rows and seeds stand behind the points; arms can differ in both."""
    cells = [cell for row in rows for cell in row.changes if cell is not None]
    most = max(cell.n_seeds for cell in cells)
    seeds = "one training seed" if most == 1 else f"{most} training seeds"
    members = range_text(cell.n_members for cell in cells if cell.n_members)
    nonmembers = range_text(cell.n_nonmembers for cell in cells if cell.n_nonmembers)
    return f"{members} members, {nonmembers} non-members, {seeds}."
