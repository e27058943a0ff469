"""Paired differences, as the page reads and words them: between detectors, copies and arms."""

from analysis.arm import axis_column
from analysis.arm_words import axis_words
from analysis.factors.contrasts import CONTRAST
from analysis.findings import Findings, Row
from analysis.intervals.estimate import Estimate
from analysis.page.view import View, capital
from analysis.tables import AUC, COPIES_CONTRAST

BEST = "best"
"""What the differences to the chosen detector are to."""
_TIMES = {2: "Twice", 3: "Three times", 4: "Four times", 5: "Five times", 10: "Ten times"}


def headline_contrasts(view: View) -> list[Row]:
    """Return one paired contrast an axis: between the headline's arm and the axis's first value.

    Where the headline's arm has the first value, the last one stands against it.
    """
    mine = dict(view.best.table.cohort.axes)
    contrasts: dict[str, Row] = {}
    for row in view.changes(CONTRAST):
        axis = row["factor"]
        elsewhere = all(
            row[axis_column(key)] == value for key, value in mine.items() if key != axis
        )
        if elsewhere and axis in mine and mine[axis] in (row["level"], row["versus"]):
            contrasts[axis] = row
    return list(contrasts.values())


def copies_contrast(view: View, level: str, versus: str) -> Row | None:
    """Return the paired contrast of two numbers of copies in the headline's arm; None without."""
    wanted = {**view.best.table.cohort.columns(), "level": level, "versus": versus}
    rows = (row for row in view.changes(COPIES_CONTRAST) if wanted.items() <= row.items())
    return next(rows, None)


def change_words(row: Row) -> str:
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


def level_cell(view: View, row: Row, level: str) -> Estimate | None:
    """Return the chosen detector's AUC in the arm of a contrast that has a level of its axis."""
    wanted = tuple(
        (key, level if key == row["factor"] else row[axis_column(key)])
        for key, _ in view.best.table.cohort.axes
    )
    table = next((one for one in view.arms if one.cohort.axes == wanted), None)
    return None if table is None else table.reported(view.best.detector)


def differences_of(view: View) -> Findings:
    """Return each detector's paired AUC differences to others (`reference`: `best`, `loss`).

    In the headline's arm, pooled, of the headline's kind of settings.
    """
    place = {"dataset": "all", "copies": "all", "selection": view.best.selection, "metric": AUC}
    rows = Findings(view.inputs.analysis.differences.to_pylist())
    return rows.where(**view.best.table.cohort.place(), **place)
