"""AUC against each swept axis of numbers: a panel an arm and detector."""

from collections.abc import Sequence
from math import isfinite, log10

from analysis.arm import short_axis
from analysis.arm_words import arm_words
from analysis.findings import Findings, contaminated_cohorts
from analysis.page.crossed import AUC, Head, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Part, present
from analysis.page.table import tokens_label
from analysis.page.view import View

_DECADE = 10 * (1 - 1e-9)
"""An axis that spans this ratio or a larger one is drawn by logarithms; 3e-4 / 3e-5 is a bit less
than ten in floats."""
_LARGE = 10_000
"""Whole numbers from here on are written as `300k`."""


def sweep_pictures(view: View) -> list[Part]:
    """Return a picture an axis that has several values, all of them numbers."""
    tables = contaminated_cohorts(view.tables)
    axes = dict.fromkeys(key for table in tables for key, _ in table.cohort.axes)
    drawn = (
        sweep_picture(view, tables, axis) for axis in axes if len(axis_values(tables, axis)) > 1
    )
    return present(*drawn)


def axis_values(tables: Sequence[Findings], axis: str) -> list[float]:
    """Return an axis's values in order; none where one of them is not a number."""
    try:
        values = sorted({float(dict(table.cohort.axes)[axis]) for table in tables})
    except ValueError:
        return []
    # `nan` and `inf` are names as well as floats, and have no place on an axis.
    return values if all(map(isfinite, values)) else []


def sweep_picture(view: View, tables: Sequence[Findings], axis: str) -> Picture | None:
    """Return the AUC of the strongest detectors against an axis, for all members with a copy."""
    values = axis_values(tables, axis)
    logarithmic = values[0] > 0 and values[-1] / values[0] >= _DECADE
    arms = dict.fromkeys(_others(table, axis) for table in tables)
    names = view.few(view.shown)

    def row(detector: str, table: Findings) -> Head:
        arm = arm_words(_others(table, axis))
        said = ", ".join(filter(None, (view.title(detector), arm)))
        return view.head(detector, arm)._replace(said=said, name=f"{detector}, {arm}".rstrip(", "))

    def column(table: Findings) -> Head:
        value = float(dict(table.cohort.axes)[axis])
        label = tokens_label(value) if value >= _LARGE else f"{value:g}"
        return Head(label, name=f"{value:g}", at=log10(value) if logarithmic else value)

    crossed = cross(
        ((name, table) for arm in arms for name in names for table in tables
         if _others(table, axis) == arm),
        lambda item: row(*item),
        lambda item: column(item[1]),
        unit=AUC,
        cell=lambda item: item[1].reported_row(item[0]),
    )  # fmt: skip
    tokens = ": tokens of the training stream" if short_axis(axis) == "tokens" else ""
    title = f"AUC against {axis}"
    panels = crossed.panels(title, f"{axis}{tokens}", per_row=len(names))
    if panels is None:
        return None
    caption = "All members with a copy, tuned settings, all datasets pooled. Bands: 95 %. "
    caption += f"A point: {crossed.behind()}. Thin orange: the first panel again."
    name, records = f"sweep-{axis.replace('.', '-')}", crossed.records("line", axis)
    return picture(name, title, caption, panels, 1180, records)


def _others(table: Findings, axis: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in table.cohort.axes if pair[0] != axis)
