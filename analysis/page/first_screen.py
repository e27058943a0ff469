"""The first screen: two pictures, a badge for each check, and what each factor does in points.

A point is a hundredth of AUC. Nothing is picked here: the arms and detectors are those of the
headline, a factor's change is the one that ends or begins in the headline's arm.
"""

from collections.abc import Sequence
from math import isfinite, nan

from analysis.arm_labels import arm_words
from analysis.checks.check import Check
from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AxisHeading, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import HALF, Columns, Effect, Effects, Part, present
from analysis.page.sections.checks import badges
from analysis.page.sections.copies import copies_picture
from analysis.page.sections.factors import (
    change_words,
    copies_contrast,
    headline_contrasts,
    level_cell,
)
from analysis.page.table import copies_text
from analysis.page.view import LOSS, MAX_ARMS, ReportView, short_counts
from analysis.summary import find_doses
from analysis.unit import AUC, POINTS

_MAX_GAINS = 3


def first_parts(view: ReportView, checks: Sequence[Check]) -> list[Part]:
    """Return the parts below the headline."""
    pictures = present(arms_picture(view), copies_picture(view))
    columns = Columns(pictures, "pictures" if len(pictures) > 1 else "")
    return present(columns, badges(checks), gains(view))


def arms_picture(view: ReportView) -> Picture | None:
    """Return every detector in the arms that are shown: number, dot and interval; None without."""
    arms = len(view.arms[:MAX_ARMS])
    names = view.shown
    columns = {}
    for table, (group, head) in zip(view.arms, view.heads(view.arms), strict=True):
        loss = table.reported(LOSS)
        columns[table.cohort] = AxisHeading(
            head,
            group=group,
            said=view.words(table.cohort),
            name=table.cohort.label(),
            note=short_counts(table.reported(view.best.detector)),
            rule=loss.value if loss is not None else nan,
        )
    crossed = cross(
        ((name, table) for name in view.order for table in view.arms),
        lambda item: view.head(item[0]),
        lambda item: columns[item[1].cohort],
        unit=AUC,
        cell=lambda item: item[1].reported_row(item[0]),
        bold=lambda item: view.bold.get(item[1].cohort) == item[0],
        displayed=([view.head(name) for name in names], [*columns.values()][:arms]),
    )
    more = [
        f"{len(view.arms) - arms} more arms" if len(view.arms) > arms else "",
        f"{left} more detectors" if (left := len(view.models_only) - len(names)) else "",
    ]
    caption = "Dot and line: AUC with its 95 % interval; dashed: Loss. Bold: best on tuning rows"
    caption += " of its arm. n: members + non-members. Rows by the first column."
    if any(more):
        caption += f" {' and '.join(filter(None, more))}: all results, below."
    return picture(
        "detectors",
        "AUC by detector and arm" if arms > 1 else "AUC by detector",
        caption,
        crossed.matrix(
            f"AUC of {len(names)} detectors in {arms} arms with intervals; "
            f"{view.name} has {view.best.cell.value:.2f} in the arm of the headline",
            row_height=min(26.0, max(16.0, 290 / len(names))),
        ),
        HALF,
        crossed.records("detector", "arm"),
    )


def gains(view: ReportView) -> Effects | None:
    """Return the known effects of copies, the swept axes and the choice of the detector."""
    axes = [axis_gain(view, row) for row in headline_contrasts(view)]
    effects = [effect for effect in (copies_gain(view), *axes, _loss_gain(view)) if effect]
    return Effects(effects[:_MAX_GAINS]) if effects else None


def copies_gain(view: ReportView) -> Effect | None:
    """Return the gain of the most copies over the fewest, paired if they are in one arm."""
    doses = find_doses(view.tables, view.best)
    if len(doses) < 2:
        return None
    few, many = doses[0], doses[-1]
    row = copies_contrast(view, many.label, few.label)
    if row is None:
        ends = " and ".join(AUC.ends(dose.cell.low, dose.cell.high) for dose in (few, many))
        sure = few.cell.high < many.cell.low or many.cell.high < few.cell.low
    else:
        ends = POINTS.ends(row["low"], row["high"])
        sure = not row["low"] <= 0 <= row["high"]
    becomes = f"AUC {few.cell.value:.2f} becomes {many.cell.value:.2f}"
    return Effect(
        _round(many.cell.value - few.cell.value),
        f"{copies_text(many.label)} instead of {few.label.replace('-', ' to ')}.",
        f"{ends}: {becomes}{_append_words(view.arm)}.",
        sure=sure,
    )


def axis_gain(view: ReportView, row: Row) -> Effect:
    """Return the effect of one step along an axis."""
    other_axes = [pair for pair in view.best.table.cohort.axes if pair[0] != row["factor"]]
    start, end = (
        cell.value if (cell := level_cell(view, row, row[key])) else nan
        for key in ("versus", "level")
    )
    becomes = f": AUC {start:.2f} becomes {end:.2f}" if isfinite(start + end) else ""
    return _paired_gain(
        Estimate.of(row), change_words(row), f"{becomes}{_append_words(arm_words(other_axes))}"
    )


def _loss_gain(view: ReportView) -> Effect | None:
    cell = view.differences.get(detector=view.best.detector, reference=LOSS)
    if cell is None or not cell.available:
        return None
    more = f"; paired on the same texts{_append_words(view.arm)}"
    return _paired_gain(cell, f"{view.name} instead of Loss", more)


def _paired_gain(cell: Estimate, change: str, more: str) -> Effect:
    may = ", which may be none" if cell.contains(0) else ""
    ends = POINTS.ends(cell.low, cell.high)
    return Effect(
        _round(cell.value), f"{change}.", f"{ends}{may}{more}.", sure=not cell.contains(0)
    )


def _append_words(words: str) -> str:
    return f", {words}" if words else ""


def _round(value: float) -> str:
    """Return a difference in whole points; with a decimal if it rounds to zero."""
    rounded = f"{100 * value:+.0f}".replace("-", "−")
    return POINTS.number(value) if rounded in ("+0", "−0") else rounded
