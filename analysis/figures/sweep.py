"""AUC against a swept number, such as the learning rate: one figure an axis of three values.

Axes whose values are not all numbers have their panels in the other figures.
"""

from collections.abc import Sequence
from pathlib import Path

from analysis.arm import short_axis
from analysis.figures.lines import Line, Point, draw_lines
from analysis.figures.style import PALETTE, ReportFigure, behind
from analysis.lookup import Cell, MetricsOf

_LEAST_VALUES = 3
_LOGARITHMIC = 20
"""An axis that spans a larger ratio is drawn by logarithms."""


def draw_sweeps(
    folder: Path, tables: Sequence[MetricsOf], emphasised: Sequence[str]
) -> list[ReportFigure]:
    """Draw every numeric axis: lines for the emphasised detectors, panels for the other axes."""
    axes = list(dict.fromkeys(key for table in tables for key, _ in table.cohort.axes))
    drawn = [_draw(folder, axis, tables, emphasised) for axis in axes]
    return [figure for figure in drawn if figure is not None]


def numbers(tables: Sequence[MetricsOf], axis: str) -> list[float]:
    """Return an axis's values in order; none where one of them is not a number."""
    try:
        return sorted({float(dict(table.cohort.axes)[axis]) for table in tables})
    except ValueError:
        return []


def _draw(
    folder: Path, axis: str, tables: Sequence[MetricsOf], emphasised: Sequence[str]
) -> ReportFigure | None:
    values = numbers(tables, axis)
    if len(values) < _LEAST_VALUES:
        return None
    arms: dict[str, list[MetricsOf]] = {}
    for table in tables:
        others = tuple(pair for pair in table.cohort.axes if pair[0] != axis)
        arms.setdefault(table.cohort._replace(axes=others).label(), []).append(table)
    lines = {
        arm: [
            Line(name, colour, _points(same, axis, name))
            for name, colour in zip(emphasised, PALETTE, strict=False)
            if _points(same, axis, name)
        ]
        for arm, same in arms.items()
    }
    cells = [cell for table in tables if (cell := _cell(table, emphasised[0])) is not None]
    most = max(cells, key=lambda cell: cell.n_members, default=None)
    counted = "" if most is None else behind(most.n_members, most.n_nonmembers, most.n_seeds)
    low, high = values[0], values[-1]
    return draw_lines(
        folder,
        f"sweep-{axis.replace('.', '-')}",
        f"AUC against {short_axis(axis)}",
        lines,
        x=short_axis(axis),
        caption="All members with at least one copy, with 95 % bands; tuned settings, all datasets "
        f"pooled. At most {counted}",
        logarithmic=low > 0 and high / low > _LOGARITHMIC,
        written=lambda value, _: f"{value:g}",
    )


def _points(tables: Sequence[MetricsOf], axis: str, detector: str) -> list[Point]:
    found = []
    for table in tables:
        cell = _cell(table, detector)
        if cell is not None and cell.available:
            at = float(dict(table.cohort.axes)[axis])
            found.append(Point(at, cell.value, cell.low, cell.high))
    return sorted(found)


def _cell(table: MetricsOf, detector: str) -> Cell | None:
    return table.get(detector, selection="tuned") or table.get(detector)
