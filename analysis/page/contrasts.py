"""Paired differences, as the page reads and words them: between detectors, copies and arms."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from analysis.arm import Cohort, axis_column
from analysis.arm_words import axis_words
from analysis.factors.contrasts import CONTRAST
from analysis.metrics_table import Cell, plain_cell
from analysis.page.view import View, capital
from analysis.selection.ranking import reported_cell
from analysis.tables import AUC, COPIES_CONTRAST

BEST = "best"
"""What the differences to the chosen detector are to."""
_TIMES = {2: "Twice", 3: "Three times", 4: "Four times", 5: "Five times", 10: "Ten times"}


def headline_contrasts(view: View) -> list[Mapping[str, Any]]:
    """Return one paired contrast an axis: between the headline's arm and the axis's first value.

    Where the headline's arm has the first value, the last one stands against it.
    """
    mine = dict(view.best.table.cohort.axes)
    contrasts: dict[str, Mapping[str, Any]] = {}
    for row in view.changes(CONTRAST):
        axis = row["factor"]
        elsewhere = all(
            row[axis_column(key)] == value for key, value in mine.items() if key != axis
        )
        if elsewhere and axis in mine and mine[axis] in (row["level"], row["versus"]):
            contrasts[axis] = row
    return list(contrasts.values())


def copies_contrast(view: View, level: str, versus: str) -> Mapping[str, Any] | None:
    """Return the paired contrast of two numbers of copies in the headline's arm; None without."""
    wanted = {**view.best.table.cohort.columns(), "level": level, "versus": versus}
    rows = (row for row in view.changes(COPIES_CONTRAST) if wanted.items() <= row.items())
    return next(rows, None)


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
    if times and noun != after:
        return f"{times} the {noun}"
    return capital(f"{after} instead of {_unlike(before, after)}")


def _unlike(words: str, other: str) -> str:
    """Return words without those with which both texts begin; all where nothing else is left."""
    mine, theirs = words.split(), other.split()
    same = next((at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
    return words if same is None else " ".join(mine[same:])


def level_cell(view: View, row: Mapping[str, Any], level: str) -> Cell | None:
    """Return the chosen detector's AUC in the arm of a contrast that has a level of its axis."""
    wanted = tuple(
        (key, level if key == row["factor"] else row[axis_column(key)])
        for key, _ in view.best.table.cohort.axes
    )
    table = next((one for one in view.arms if one.cohort.axes == wanted), None)
    return None if table is None else reported_cell(table, view.best.detector)


def differences_of(view: View) -> dict[str, dict[str, Cell]]:
    """Return each detector's paired AUC differences, by what they are to (`best`, `loss`).

    In the headline's arm, pooled, of the headline's kind of settings.
    """
    wanted = columns_of(view.best.table.cohort) | {"dataset": "all", "copies": "all"}
    wanted |= {"selection": view.best.selection, "metric": AUC}
    found: dict[str, dict[str, Cell]] = {}
    for row in matching_rows(view.inputs.analysis.differences, wanted):
        found.setdefault(row["detector"], {})[row["reference"]] = plain_cell(row)
    return found


def contrast_cell(row: Mapping[str, Any]) -> Cell:
    """Return a difference of two arms as a number with its interval."""
    return plain_cell({**row, "n_nonmembers": 0})


def columns_of(cohort: Cohort) -> dict[str, str]:
    """Return the columns that name a cohort, with its values."""
    return {axis_column(key): value for key, value in cohort.axes} | {"model": cohort.model}


def matching_rows(table: pa.Table, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows that have some values in some columns."""
    return [
        row for row in table.to_pylist() if all(row[key] == value for key, value in wanted.items())
    ]
