"""The forest plot of a validation: the AUC of every detector, and the judged ones marked."""

from math import isfinite
from pathlib import Path
from typing import Any

from analysis.figures.style import (
    FAINT,
    INK,
    MUTED,
    PALETTE,
    ReportFigure,
    draw_chance_line,
    house_style,
    new_figure,
    save_figure,
)
from analysis.validate.ranking import Ranked
from analysis.validate.validation import Validation

_LONGEST = 36
"""Letters of a detector's name that the figure shows."""


def draw_forest(folder: Path, found: Validation) -> ReportFigure | None:
    """Draw the ranking, the highest AUC on top; None where no detector has an AUC."""
    lines = [one for one in found.ranking.lines if one.auc is not None and isfinite(one.auc.value)]
    if not lines:
        return None
    with house_style():
        figure = new_figure(0.9 + 0.3 * len(lines))
        axis = figure.subplots()
        draw_chance_line(axis, vertical=True)
        for at, line in enumerate(reversed(lines)):
            _draw(axis, at, line)
        axis.set_yticks(range(len(lines)), [_short(one.detector) for one in reversed(lines)])
        for label, line in zip(axis.get_yticklabels(), reversed(lines), strict=True):
            label.set_fontweight("bold" if line.judged else "normal")
            label.set_color(PALETTE[0] if line.judged else INK)
        axis.set_ylim(-0.6, len(lines) - 0.4)
        axis.grid(True, axis="x")
        axis.tick_params(axis="y", length=0)
        axis.set_xlabel("AUC")
        return save_figure(
            figure,
            folder,
            name="forest",
            title="AUC by detector",
            caption=_caption(found, lines),
            alternative="Forest plot, the highest first: "
            + "; ".join(f"{one.detector} {_words(one)}" for one in lines)
            + ".",
        )


def _draw(axis: Any, at: int, line: Ranked) -> None:
    cell = line.auc
    if cell is None:
        return
    colour = PALETTE[0] if line.judged else MUTED if line.role else PALETTE[1]
    if isfinite(cell.low):
        width = 2.6 if line.judged else 1.6
        axis.plot([cell.low, cell.high], [at, at], color=colour, linewidth=width, zorder=2)
    axis.plot(
        [cell.value],
        [at],
        marker="D" if line.judged else "o",
        markersize=7 if line.judged else 5,
        markerfacecolor=colour if not line.own_rows else FAINT,
        markeredgecolor=colour,
        zorder=3,
    )


def _caption(found: Validation, lines: list[Ranked]) -> str:
    shared = next((one.auc for one in lines if not one.own_rows), lines[0].auc)
    counts = ""
    if shared is not None:
        counts = (
            f" {shared.n_members} members and {shared.n_nonmembers} non-members of the test split, "
            f"{shared.n_seeds} {'seed' if shared.n_seeds == 1 else 'seeds'}."
        )
    apart = [one.detector for one in lines if one.own_rows]
    own = f" On rows of their own: {', '.join(apart)}." if apart else ""
    return (
        f"AUC over all members with at least one copy in the arm {found.arm}, with "
        f"{found.settings.confidence:.0%} intervals (from influence values, summed by group). "
        "Diamonds: the judged detectors; grey: a control or an upper bound. Settings were chosen "
        f"on the tune split. The dashed line is chance.{counts}{own}"
    )


def _words(line: Ranked) -> str:
    cell = line.auc
    if cell is None:
        return "no AUC"
    ends = f" ({cell.low:.2f} to {cell.high:.2f})" if isfinite(cell.low) else ""
    return f"{cell.value:.2f}{ends}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
