"""Lines with bands, named at their ends: AUC against a number, such as the size of the corpus.

A swept axis is one of numbers, scaled by logarithms where it spans a decade. Axes whose values are
not all numbers have their panels in the other figures.
"""

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from analysis.arm import short_axis
from analysis.figures.captions import describe_sample_sizes, further_text, interval_text
from analysis.figures.panel import (
    LOOKS,
    MAX_PANELS,
    MUTED,
    PALETTE,
    Axis,
    Figure,
    Panel,
    Rule,
    Series,
    tokens_label,
)
from analysis.metrics_table import CohortMetrics
from analysis.selection.ranking import reported_cell

_MAX_NAME = 16
"""Letters of an arm's name at the end of a line."""
_DECADE = 10 * (1 - 1e-9)
"""An axis that spans this ratio or a larger one is drawn by logarithms; 3e-4 / 3e-5 is a bit less
than ten in floats."""
_LARGE = 10_000
"""Whole numbers from here on are written as `300k`."""


class Point(NamedTuple):
    """One interval of a line."""

    x: float
    value: float
    low: float
    high: float


def line(name: str, colour: str, points: Iterable[Point], *, look: int = 0) -> Series:
    """Return a line with its band; lines of one panel differ in their look, as in their colour."""
    x, value, low, high = zip(*points, strict=True)
    dashes, mark = LOOKS[look % len(LOOKS)]
    if colour == MUTED:
        dashes, mark = "dashed", "."
    return Series(x=x, y=value, low=low, high=high, label=name, colour=colour, line=dashes,
                  mark=mark, size=4.5, width=1.4 if colour == MUTED else 2.0)  # fmt: skip


def lines_figure(
    name: str,
    title: str,
    arms: Mapping[str, Sequence[Series]],
    *,
    x: str,
    caption: str,
    logarithmic: bool,
    written: Callable[[float], str],
) -> Figure | None:
    """Return one panel an arm, at most six; None where there is nothing to draw.

    Args:
        name: file stem, and anchor in the page.
        title: of the figure.
        arms: the lines of each panel by its title.
        x: what the common axis shows.
        caption: of the figure.
        logarithmic: scale the axis by logarithms, linear up to its first step above 0.
        written: how a number of the axis is written.
    """
    shown = dict([(arm, lines) for arm, lines in arms.items() if lines][:MAX_PANELS])
    if not shown:
        return None
    values = sorted({at for lines in shown.values() for one in lines for at in one.x})
    positive = [at for at in values if at > 0]
    axis = Axis(
        scale="symlog" if logarithmic and positive else "linear",
        linear=positive[0] if positive else 1.0,
        ticks={at: written(at) for at in values},
    )
    return Figure(
        name=name,
        title=title,
        caption=caption + further_text(len(arms) - len(shown), "arms are in the tables"),
        alternative=f"Lines of AUC against {x.lower()}. "
        + " ".join(_alternative_text(shown, written)),
        panels=[
            Panel(title=arm, series=lines, x=axis, rules=[Rule(0.5, "y")])
            for arm, lines in shown.items()
        ],
        rows=[
            {"panel": arm, "line": one.label, x: at, "auc": value, "low": low, "high": high}
            for arm, lines in arms.items()
            for one in lines
            for at, value, low, high in zip(one.x, one.y, one.low, one.high, strict=True)
        ],
        height=3.4 if len(shown) > 1 else 3.9,
        x=x,
        y="AUC",
    )


def _alternative_text(
    shown: Mapping[str, Sequence[Series]], written: Callable[[float], str]
) -> Iterator[str]:
    """Yield where each line begins and ends, panel by panel."""
    for arm, lines in shown.items():
        ends = "; ".join(
            f"{one.label} "
            + " to ".join(
                dict.fromkeys(
                    f"{interval_text(one.y[at], one.low[at], one.high[at])} at {written(one.x[at])}"
                    for at in (0, -1)
                )
            )
            for one in lines
        )
        yield f"{arm}: {ends}." if arm else f"{ends}."


def sweep_figures(
    tables: Sequence[CohortMetrics], emphasised: Sequence[str]
) -> list[Figure | None]:
    """Return every numeric axis: lines for the emphasised detectors, panels for the other axes.

    Where several datasets were spiked, the best detector has a figure of a line a dataset, too;
    where other axes are swept besides, a figure has a panel a detector and a line an arm.
    """
    figures = []
    for axis in dict.fromkeys(key for table in tables for key, _ in table.cohort.axes):
        if len(axis_values(tables, axis)) > 1:
            figures += [
                _by_line(axis, tables, emphasised),
                _by_detector(axis, tables, emphasised),
                _by_line(axis, tables, emphasised[:1], by_dataset=True),
            ]
    return figures


def axis_values(tables: Sequence[CohortMetrics], axis: str) -> list[float]:
    """Return an axis's values in order; none where one of them is not a number."""
    try:
        values = sorted({float(dict(table.cohort.axes)[axis]) for table in tables})
    except ValueError:
        return []
    # `nan` and `inf` are names as well as floats, and have no place on an axis.
    return values if all(map(isfinite, values)) else []


def _by_line(
    axis: str,
    tables: Sequence[CohortMetrics],
    detectors: Sequence[str],
    *,
    by_dataset: bool = False,
) -> Figure | None:
    """Return a panel an arm with a line a detector, or one a dataset where there are several."""
    datasets = list(dict.fromkeys(name for one in tables for name in one.values("dataset")))[1:]
    if by_dataset and len(datasets) < 2:
        return None
    drawn = [(name, name, "all") for name in detectors]
    if by_dataset:
        drawn = [(name, detectors[0], name) for name in datasets]
    drawn = drawn[: len(PALETTE)]
    left = len(datasets) - len(drawn) if by_dataset else 0
    behind = describe_sample_sizes(
        [
            {name: reported_cell(table, detector, dataset=dataset)
             for name, detector, dataset in drawn}
            for table in tables
        ]
    )  # fmt: skip
    return _figure(
        axis,
        tables,
        f"sweep-{axis.replace('.', '-')}" + ("-datasets" if by_dataset else ""),
        f"AUC against {axis}" + (f" by dataset ({detectors[0]})" if by_dataset else ""),
        {
            arm: _lines(axis, [(name, same, detector, of) for name, detector, of in drawn])
            for arm, same in _arms(tables, axis).items()
        },
        "All members with at least one copy, with 95 % bands; tuned settings. "
        + (f"{detectors[0]}, a line a dataset." if by_dataset else "All datasets pooled.")
        + f" A point: {behind}{further_text(left, 'datasets are in findings.parquet')}",
    )


def _by_detector(
    axis: str, tables: Sequence[CohortMetrics], detectors: Sequence[str]
) -> Figure | None:
    """Return a panel a detector, a line an arm; None where no other axis tells arms apart."""
    arms = _arms(tables, axis)
    if len(arms) < 2:
        return None
    shown = dict(list(arms.items())[: len(PALETTE)])
    # A name that would run into the next panel is a letter, which the caption explains.
    long = max(map(len, shown)) > _MAX_NAME
    names = dict(zip(shown, string.ascii_uppercase if long else shown, strict=False))
    keys = "".join(f"{name}: {arm}. " for arm, name in names.items() if name != arm)
    behind = describe_sample_sizes(
        [{name: reported_cell(table, name) for name in detectors} for table in tables]
    )
    return _figure(
        axis,
        tables,
        f"sweep-{axis.replace('.', '-')}-arms",
        f"AUC against {axis}, arm by arm",
        {
            detector: _lines(
                axis, [(names[arm], same, detector, "all") for arm, same in shown.items()]
            )
            for detector in detectors
        },
        "A panel a detector, a line an arm: dashes, marks and the names at the ends tell "
        f"arms apart. {keys}All datasets pooled, all members with at least one copy, with 95 % "
        f"bands; tuned settings. A point: {behind}"
        f"{further_text(len(arms) - len(shown), 'arms are in the table of all results')}",
    )


def _figure(
    axis: str,
    tables: Sequence[CohortMetrics],
    name: str,
    title: str,
    panels: dict[str, list[Series]],
    caption: str,
) -> Figure | None:
    values = axis_values(tables, axis)
    return lines_figure(
        name,
        title,
        panels,
        x=axis if short_axis(axis) != "tokens" else f"{axis}: tokens of the training stream",
        caption=caption,
        logarithmic=values[0] > 0 and values[-1] / values[0] >= _DECADE,
        written=lambda value: tokens_label(value) if value >= _LARGE else f"{value:g}",
    )


def _arms(tables: Sequence[CohortMetrics], axis: str) -> dict[str, list[CohortMetrics]]:
    """Return the tables that differ in nothing but one axis, by what they share."""
    arms: dict[str, list[CohortMetrics]] = {}
    for table in tables:
        others = tuple(pair for pair in table.cohort.axes if pair[0] != axis)
        arms.setdefault(table.cohort._replace(axes=others).label(), []).append(table)
    return arms


def _lines(
    axis: str, wanted: Sequence[tuple[str, Sequence[CohortMetrics], str, str]]
) -> list[Series]:
    """Return the lines that have points, of name, arms along the axis, detector and dataset."""
    lines: list[Series] = []
    for (name, tables, detector, dataset), colour in zip(wanted, PALETTE, strict=False):
        cells = [
            (float(dict(table.cohort.axes)[axis]), reported_cell(table, detector, dataset=dataset))
            for table in tables
        ]
        points = sorted(
            Point(at, cell.value, cell.low, cell.high)
            for at, cell in cells
            if cell is not None and cell.available
        )
        if points:
            lines.append(line(name, colour, points, look=len(lines)))
    return lines
