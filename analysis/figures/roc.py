"""ROC curves of one cohort, on linear and on logarithmic axes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.arm import MODEL_FREE
from analysis.figures.captions import describe_sample_sizes
from analysis.figures.cohort_scores import CohortData, cohort_rows
from analysis.figures.style import (
    INK,
    MUTED,
    ReportFigure,
    detector_colours,
    house_style,
    new_figure,
    save_figure,
)
from analysis.metrics import SUPPORT, Floats
from analysis.metrics_table import Cell, CohortMetrics
from analysis.selection.ranking import highest_first
from analysis.settings import AnalysisSettings

_FLOOR = 1e-3
_MAX_CURVES = 9
_MIN_SPAN = 0.1
"""Where the lowest supported rate is higher than this, logarithms would show nothing more."""


def draw_roc(
    folder: Path,
    data: CohortData,
    table: CohortMetrics,
    *,
    emphasised: Sequence[str],
    settings: AnalysisSettings,
) -> ReportFigure:
    """Draw the covariate-adjusted ROC curves (one threshold for each dataset) of a cohort.

    Logarithmic axes go down to the lowest rate that the number of non-members supports, by the
    rule of the table of rates; where that is hardly below 0.1, they are left out.
    """
    least = 0 if data.loaded[0].arm.copies is None else 1
    tuned = "tuned" in table.values("selection")
    selection = "tuned" if tuned else "default"
    ranked: list[tuple[str, Cell]] = []
    for detector in table.values("detector"):
        cell = table.get(detector, selection=selection)
        if cell is not None and cell.available:
            ranked.append((detector, cell))
    ranked = [ranked[at] for at in highest_first([cell.value for _, cell in ranked])]
    measured = len(ranked)
    ranked = _drawn(ranked, emphasised)
    colour = detector_colours([name for name, _ in ranked], emphasised)
    cells = dict(ranked)
    floor = max(_FLOOR, lowest_rate(cells))
    points: list[dict[str, object]] = []
    with house_style():
        figure = new_figure(4.4)
        linear, log = figure.subplots(1, 2)
        log.set_visible(floor <= _MIN_SPAN)
        for detector, _ in reversed(ranked):
            rows = cohort_rows(data, data.column(detector, selection), settings)
            exceeded = np.sort(rows.exceeded[rows.copies >= least])
            grid, share = _steps(exceeded, 0.0)
            points += [
                {"detector": detector, "false_positive_rate": float(x),
                 "true_positive_rate": float(y)}
                for x, y in zip(grid, share, strict=True)
            ]  # fmt: skip
            strong = detector in emphasised
            blind = detector in MODEL_FREE
            line = {
                "color": INK if blind else colour[detector],
                "linewidth": 2.0 if strong else 1.1,
                "linestyle": (0, (1, 1.5)) if blind else "-",
                "zorder": 3 if strong else 2,
                "drawstyle": "steps-post",
            }
            _curve(linear, exceeded, 0.0, line)
            _curve(log, exceeded, floor, line)
        linear.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        chance = np.geomspace(floor, 1, 100)
        log.plot(chance, chance, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        _frame(linear, log, floor)
        _key(linear, ranked, colour, emphasised)
        where = data.cohort.label()
        right = (
            f"Linear axes on the left, logarithmic on the right, down to {floor:.2g}, the lowest "
            "rate that so many non-members support"
            if floor <= _MIN_SPAN
            else f"So few non-members support no rate below {floor:.2g}, so there are no "
            "logarithmic axes"
        )
        dots = ", dots the blind control" if MODEL_FREE & cells.keys() else ""
        some = (
            f" The {len(ranked)} curves of the strongest of {measured} detectors, of loss and of "
            "the control; the tables have all."
            if len(ranked) < measured
            else ""
        )
        auc = ", ".join(f"{name} {cell.value:.2f}" for name, cell in ranked)
        return save_figure(
            figure,
            folder,
            name="roc",
            title="ROC curves" + (f" ({where})" if where else ""),
            caption=f"{right}; {selection} settings, members with at least one copy. Thresholds "
            f"are set within each dataset, dashes mark chance{dots}; the key gives the AUC. "
            f"{describe_sample_sizes([cells])}{some}",
            alternative=f"ROC curves, by falling AUC: {auc or 'none'}.",
            data=points,
        )


def _drawn(ranked: list[tuple[str, Cell]], emphasised: Sequence[str]) -> list[tuple[str, Cell]]:
    """Return the curves that are drawn: at most so many as the key holds."""
    if len(ranked) <= _MAX_CURVES:
        return ranked
    always = {name for name, _ in ranked if name in MODEL_FREE or name in (*emphasised, "loss")}
    free = max(0, _MAX_CURVES - len(always))
    others = [name for name, _ in ranked if name not in always][:free]
    return [item for item in ranked if item[0] in {*always, *others}]


def lowest_rate(cells: Mapping[str, Cell]) -> float:
    """Return the lowest false-positive rate that the non-members of all curves support."""
    fewest = min((cell.n_nonmembers // max(1, cell.n_seeds) for cell in cells.values()), default=0)
    return min(1.0, SUPPORT / fewest) if fewest else 1.0


def _curve(axis: Any, exceeded: Floats, floor: float, line: dict[str, Any]) -> None:
    """Plot the share of members with at most x of the non-members above them."""
    if not len(exceeded):
        return
    grid, share = _steps(exceeded, floor)
    axis.plot(grid, np.maximum(share, floor), **line)


def _steps(exceeded: Floats, floor: float) -> tuple[Floats, Floats]:
    """Return false-positive rates from a floor on, and the true-positive rates there."""
    if not len(exceeded):
        return np.zeros(0), np.zeros(0)
    grid = np.unique(np.concatenate([[floor, 1.0], exceeded[exceeded >= floor]]))
    share = np.searchsorted(exceeded, grid, side="right") / len(exceeded)
    if floor == 0.0:
        grid, share = np.concatenate([[0.0], grid]), np.concatenate([[0.0], share])
    return grid, share


def _frame(linear: Any, log: Any, floor: float) -> None:
    linear.set(xlim=(-0.01, 1), ylim=(0, 1.01), title="Linear axes")
    linear.set_xticks(np.linspace(0, 1, 6))
    log.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1.05))
    log.set_title("Logarithmic axes")
    ticks = [tick for tick in (0.001, 0.01, 0.1, 1) if tick >= floor]
    if len(ticks) < 3:
        ticks = [tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1) if tick >= floor]
    for axis in (log.xaxis, log.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    for axis in (linear, log):
        axis.set_xlabel("False-positive rate")
        axis.set_ylabel("True-positive rate")
        axis.grid(True)
        axis.set_box_aspect(1)


def _key(
    axis: Any, ranked: Sequence[tuple[str, Any]], colour: dict[str, str], emphasised: Sequence[str]
) -> None:
    """Write the detectors into the empty lower right corner, best on top, in their colours."""
    for at, (detector, cell) in enumerate(reversed(ranked[:9])):
        strong = detector in emphasised
        shade = INK if detector in MODEL_FREE else colour[detector] if strong else MUTED
        axis.text(
            0.975,
            0.03 + 0.055 * at,
            f"{detector}  {cell.value:.2f}",
            transform=axis.transAxes,
            ha="right",
            va="bottom",
            fontsize=8.5,
            color=shade,
            fontweight="bold" if strong else "normal",
            zorder=5,
        )
