"""Paired contrasts between arms, as the page words them: `Five times the learning rate`."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from analysis.arm import axis_column
from analysis.arm_words import axis_words
from analysis.factors.findings import CONTRAST
from analysis.metrics_table import Cell
from analysis.page.view import View, capital
from analysis.selection.ranking import reported_cell
from analysis.tables import POOLED

_TIMES = {2: "Twice", 3: "Three times", 4: "Four times", 5: "Five times", 10: "Ten times"}


def headline_contrasts(view: View) -> list[Mapping[str, Any]]:
    """Return one paired contrast an axis: between the headline's arm and the axis's first value.

    Where the headline's arm has the first value, the last one stands against it.
    """
    table = view.inputs.analysis.factors
    rows = [] if table is None else table.to_pylist()
    mine = dict(view.best.table.cohort.axes)
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        axis = row["factor"]
        if (row["kind"], row["dataset"], row["detector"]) != (
            CONTRAST,
            POOLED,
            view.best.detector,
        ) or axis not in mine:
            continue
        elsewhere = all(
            row[axis_column(key)] == value for key, value in mine.items() if key != axis
        )
        ends = mine[axis] in (row["level"], row["versus"])
        if elsewhere and ends and isfinite(row["low"]):
            found[axis] = row
    return list(found.values())


def change_words(row: Mapping[str, Any]) -> str:
    """Return a contrast in words: `Five times the learning rate`, or `A instead of B`."""
    axis, level, versus = row["factor"], row["level"], row["versus"]
    after, before = axis_words(axis, level), axis_words(axis, versus)
    noun = after.removesuffix(f" {level}")
    try:
        ratio = float(level) / float(versus)
    except (ValueError, ZeroDivisionError):
        ratio = 0.0
    times = _TIMES.get(round(ratio)) if abs(ratio - round(ratio)) < 1e-6 else None
    return f"{times} the {noun}" if times and noun != after else capital(f"{after}, not {before}")


def level_cell(view: View, row: Mapping[str, Any], level: str) -> Cell | None:
    """Return the chosen detector's AUC in the arm of a contrast that has a level of its axis."""
    wanted = tuple(
        (key, level if key == row["factor"] else row[axis_column(key)])
        for key, _ in view.best.table.cohort.axes
    )
    table = next((one for one in view.arms if one.cohort.axes == wanted), None)
    return None if table is None else reported_cell(table, view.best.detector)
