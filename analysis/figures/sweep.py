"""AUC against a swept number, such as the size of the corpus: one figure an axis.

The axis is one of numbers, scaled by logarithms where it spans a decade. Axes whose values are not
all numbers have their panels in the other figures.
"""

import string
from collections.abc import Sequence
from functools import partial
from math import isfinite
from pathlib import Path

from analysis.arm import short_axis
from analysis.figures.captions import describe_sample_sizes
from analysis.figures.lines import Line, Point, draw_lines
from analysis.figures.style import PALETTE, ReportFigure, tokens_label
from analysis.metrics_table import CohortMetrics
from analysis.selection.ranking import reported_cell

_MIN_VALUES = 2
_MAX_NAME = 16
"""Letters of an arm's name at the end of a line."""
_DECADE = 10 * (1 - 1e-9)
"""An axis that spans this ratio or a larger one is drawn by logarithms; 3e-4 / 3e-5 is a bit less
than ten in floats."""
_LARGE = 10_000
"""Whole numbers from here on are written as `300k`."""


def draw_sweeps(
    folder: Path, tables: Sequence[CohortMetrics], emphasised: Sequence[str]
) -> list[ReportFigure]:
    """Draw every numeric axis: lines for the emphasised detectors, panels for the other axes.

    Where several datasets were spiked, the best detector has a figure of a line a dataset, too;
    where other axes are swept besides, a figure has a panel a detector and a line an arm.
    """
    axes = list(dict.fromkeys(key for table in tables for key, _ in table.cohort.axes))
    drawn = []
    for axis in axes:
        drawn.append(_draw(folder, axis, tables, emphasised))
        drawn.append(_draw_by_detector(folder, axis, tables, emphasised))
        datasets = list(dict.fromkeys(name for one in tables for name in one.values("dataset")))
        if len(datasets) > 2:
            drawn.append(_draw(folder, axis, tables, emphasised[:1], datasets[1:]))
    return [figure for figure in drawn if figure is not None]


def axis_values(tables: Sequence[CohortMetrics], axis: str) -> list[float]:
    """Return an axis's values in order; none where one of them is not a number."""
    try:
        found = sorted({float(dict(table.cohort.axes)[axis]) for table in tables})
    except ValueError:
        return []
    # `nan` and `inf` are names as well as floats, and have no place on an axis.
    return found if all(isfinite(value) for value in found) else []


def _draw(
    folder: Path,
    axis: str,
    tables: Sequence[CohortMetrics],
    detectors: Sequence[str],
    datasets: Sequence[str] = (),
) -> ReportFigure | None:
    """Draw one axis: a line a detector, or a line a dataset where there are `datasets`."""
    values = axis_values(tables, axis)
    if len(values) < _MIN_VALUES:
        return None
    arms = _arms(tables, axis)
    drawn = [(name, detectors[0], name) for name in datasets[: len(PALETTE)]] or [
        (name, name, "all") for name in detectors
    ]
    points = partial(_points, axis=axis)
    lines = {
        arm: [
            Line(name, colour, found)
            for (name, detector, dataset), colour in zip(drawn, PALETTE, strict=False)
            if (found := points(same, detector=detector, dataset=dataset))
        ]
        for arm, same in arms.items()
    }
    behind = describe_sample_sizes(
        [
            {
                name: reported_cell(table, detector, dataset=dataset)
                for name, detector, dataset in drawn
            }
            for table in tables
        ]
    )
    low, high = values[0], values[-1]
    pooled = f"{detectors[0]}, a line a dataset." if datasets else "All datasets pooled."
    left = len(datasets) - len(drawn) if datasets else 0
    more = f" {left} further datasets are in findings.parquet." if left else ""
    return draw_lines(
        folder,
        f"sweep-{axis.replace('.', '-')}" + ("-datasets" if datasets else ""),
        f"AUC against {axis}" + (f" by dataset ({detectors[0]})" if datasets else ""),
        lines,
        x=axis if short_axis(axis) != "tokens" else f"{axis}: tokens of the training stream",
        caption="All members with at least one copy, with 95 % bands; tuned settings. "
        f"{pooled} A point: {behind}{more}",
        logarithmic=low > 0 and high / low >= _DECADE,
        written=_written,
    )


def _draw_by_detector(
    folder: Path, axis: str, tables: Sequence[CohortMetrics], detectors: Sequence[str]
) -> ReportFigure | None:
    """Draw a panel a detector, a line an arm; None where no other axis tells arms apart."""
    values = axis_values(tables, axis)
    arms = _arms(tables, axis)
    if len(values) < _MIN_VALUES or len(arms) < 2:
        return None
    shown = dict(list(arms.items())[: len(PALETTE)])
    # A name that would run into the next panel is a letter, which the caption explains.
    long = max(len(arm) for arm in shown) > _MAX_NAME
    names = {
        arm: letter if long else arm
        for arm, letter in zip(shown, string.ascii_uppercase, strict=False)
    }
    lines = {
        detector: [
            Line(names[arm], colour, found)
            for (arm, same), colour in zip(shown.items(), PALETTE, strict=False)
            if (found := _points(same, axis=axis, detector=detector, dataset="all"))
        ]
        for detector in detectors
    }
    keys = "".join(f"{name}: {arm}. " for arm, name in names.items() if name != arm)
    behind = describe_sample_sizes(
        [{name: reported_cell(table, name) for name in detectors} for table in tables]
    )
    rest = len(arms) - len(shown)
    more = f" {rest} further arms are in the table of all results." if rest else ""
    low, high = values[0], values[-1]
    return draw_lines(
        folder,
        f"sweep-{axis.replace('.', '-')}-arms",
        f"AUC against {axis}, arm by arm",
        lines,
        x=axis if short_axis(axis) != "tokens" else f"{axis}: tokens of the training stream",
        caption="A panel a detector, a line an arm: dashes, marks and the names at the ends tell "
        f"arms apart. {keys}All datasets pooled, all members with at least one copy, with 95 % "
        f"bands; tuned settings. A point: {behind}{more}",
        logarithmic=low > 0 and high / low >= _DECADE,
        written=_written,
    )


def _arms(tables: Sequence[CohortMetrics], axis: str) -> dict[str, list[CohortMetrics]]:
    """Return the tables that differ in nothing but one axis, by what they share."""
    arms: dict[str, list[CohortMetrics]] = {}
    for table in tables:
        others = tuple(pair for pair in table.cohort.axes if pair[0] != axis)
        arms.setdefault(table.cohort._replace(axes=others).label(), []).append(table)
    return arms


def _written(value: float, _: int) -> str:
    return tokens_label(value, 0) if value >= _LARGE else f"{value:g}"


def _points(
    tables: Sequence[CohortMetrics], *, axis: str, detector: str, dataset: str
) -> list[Point]:
    found = []
    for table in tables:
        cell = reported_cell(table, detector, dataset=dataset)
        if cell is not None and cell.available:
            at = float(dict(table.cohort.axes)[axis])
            found.append(Point(at, cell.value, cell.low, cell.high))
    return sorted(found)
