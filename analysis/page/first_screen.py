"""The first screen: two pictures, a badge for each check, and what each factor does in points.

A point is a hundredth of AUC. Nothing is picked here: the arms and detectors are those of the
headline, a factor's change is the one that ends or begins in the headline's arm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import Any

from analysis.checks.check import NEEDED, Check
from analysis.page.contrasts import (
    change_words,
    copies_contrast,
    differences_of,
    headline_contrasts,
    level_cell,
)
from analysis.page.crossed import Head, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.grids import copies_text
from analysis.page.parts import Badge, Badges, Columns, Gain, Gains, Part, present
from analysis.page.sections.copies import copies_picture
from analysis.page.view import LOSS, MAX_ARMS, View, short_counts
from analysis.summary import find_doses
from analysis.unit import AUC, POINTS

CHECKS = "checks"
"""Anchor of the section on the checks."""
_MAX_GAINS = 3
_WIDTH = 640.0
_SHORT_NAMES = {
    "streams": "Training streams",
    "fed": "Fed to the models",
    "background": "Background",
    "no copy": "No copy drawn",
}


def first_parts(view: View, checks: Sequence[Check]) -> list[Part]:
    """Return what stands below the headline."""
    arms, copies = arms_picture(view), copies_picture(view)
    pictures = present(arms, copies)
    return present(
        Columns(pictures, "pictures" if len(pictures) > 1 else ""),
        badges(checks),
        Gains(shown) if (shown := gains(view)) else None,
    )


def arms_picture(view: View) -> Picture | None:
    """Return every detector in the arms that are shown: number, dot and interval; None without."""
    arms = view.arms[:MAX_ARMS]
    names = view.shown
    columns = {}
    for table, (group, head) in zip(view.arms, view.heads(view.arms), strict=True):
        loss = table.reported(LOSS)
        columns[table.cohort] = Head(
            head, group=group, said=view.words(table.cohort), name=table.cohort.label(),
            note=short_counts(table.reported(view.best.detector)),
            rule=loss.value if loss is not None else nan,
        )  # fmt: skip
    every = cross(
        ((name, table) for name in view.order for table in view.arms),
        lambda item: view.head(item[0]),
        lambda item: columns[item[1].cohort],
        unit=AUC,
        cell=lambda item: item[1].reported_row(item[0]),
        bold=lambda item: view.bold.get(item[1].cohort) == item[0],
    )
    shown = replace(
        every, rows=[view.head(name) for name in names], columns=every.columns[: len(arms)]
    )
    matrix = shown.matrix(
        f"AUC of {len(names)} detectors in {len(arms)} arms with intervals; "
        f"{view.name} has {view.best.cell.value:.2f} in the arm of the headline",
        row_height=min(26.0, max(16.0, 290 / len(names))),
    )
    if matrix is None:
        return None
    caption = "Dot and line: AUC with its 95 % interval; dashed: Loss. Bold: best on the tune split"
    caption += " of its arm. n: members + non-members. Rows by the first column."
    more = [
        f"{len(view.arms) - len(arms)} more arms" if len(view.arms) > len(arms) else "",
        f"{left} more detectors" if (left := len(view.models_only) - len(names)) else "",
    ]
    if any(more):
        caption += f" {' and '.join(filter(None, more))}: all results, below."
    title = "AUC by detector and arm" if len(arms) > 1 else "AUC by detector"
    records = every.records("detector", "arm")
    return picture("detectors", title, caption, matrix, _WIDTH, records)


def badges(checks: Sequence[Check]) -> Badges:
    """Return a badge a check: its verdict, its number, and what a pass needs."""
    return Badges(
        [
            Badge(_SHORT_NAMES.get(one.key, one.name), one.verdict, _badge_lines(one))
            for one in checks
        ],
        CHECKS,
    )


def _badge_lines(check: Check) -> list[str]:
    if check.verdict == "not measured":
        return [check.verdict, "nothing to measure"]
    if check.room is not None:
        return [
            f"{check.verdict}: {check.room.low:.2f}–{check.room.high:.2f}",
            f"a pass needs {NEEDED.low:.2f}–{NEEDED.high:.2f}",
        ]
    if check.key == "background":
        return [f"{check.verdict}: {check.off:,} of {check.total:,}", "documents overlap (needs 0)"]
    what = "copies, token for token" if check.key == "fed" else "copies found (needs all)"
    return [f"{check.verdict}: {check.total - check.off:,} of {check.total:,}", what]


def gains(view: View) -> list[Gain]:
    """Return what copies, the swept axes and the choice of the detector do, as far as is known."""
    found = [copies_gain(view), *(axis_gain(view, row) for row in headline_contrasts(view))]
    shown = [one for one in found if one is not None][:_MAX_GAINS]
    if len(shown) < _MAX_GAINS and (over_loss := _loss_gain(view)):
        shown.append(over_loss)
    return shown


def copies_gain(view: View) -> Gain | None:
    """Return what the most copies have over the fewest, paired where they stand in one arm."""
    doses = find_doses(view.tables, view.best)
    if len(doses) < 2:
        return None
    few, many = doses[0], doses[-1]
    becomes = f"AUC {few.cell.value:.2f} becomes {many.cell.value:.2f}"
    row = copies_contrast(view, many.label, few.label)
    if row is None:
        ends = f"[{few.cell.low:.2f}, {few.cell.high:.2f}] and "
        ends += f"[{many.cell.low:.2f}, {many.cell.high:.2f}]: "
        sure = few.cell.high < many.cell.low or many.cell.high < few.cell.low
    else:
        ends = f"{POINTS.ends(row['low'], row['high'])}: "
        sure = not row["low"] <= 0 <= row["high"]
    return Gain(
        _whole(many.cell.value - few.cell.value),
        f"{copies_text(many.label)} instead of {few.label.replace('-', ' to ')}.",
        f"{ends}{becomes}{_at(view.arm)}.",
        sure=sure,
    )


def axis_gain(view: View, row: Mapping[str, Any]) -> Gain:
    """Return what one step along an axis does."""
    rest = [pair for pair in view.best.table.cohort.axes if pair[0] != row["factor"]]
    where = view.words(view.best.table.cohort._replace(axes=tuple(rest)))
    may = "" if not row["low"] <= 0 <= row["high"] else ", which may be none"
    start, end = (
        cell.value if (cell := level_cell(view, row, row[key])) else float("nan")
        for key in ("versus", "level")
    )
    becomes = f": AUC {start:.2f} becomes {end:.2f}" if isfinite(start + end) else ""
    return Gain(
        _whole(row["value"]),
        f"{change_words(row)}.",
        f"{POINTS.ends(row['low'], row['high'])}{may}{becomes}{_at(where)}.",
        sure=not row["low"] <= 0 <= row["high"],
    )


def _loss_gain(view: View) -> Gain | None:
    cell = differences_of(view).get(detector=view.best.detector, reference=LOSS)
    if cell is None or not cell.available:
        return None
    may = "" if not cell.contains(0) else ", which may be none"
    return Gain(
        _whole(cell.value),
        f"{view.name} instead of Loss.",
        f"{POINTS.ends(cell.low, cell.high)}{may}; paired on the same texts{_at(view.arm)}.",
        sure=not cell.contains(0),
    )


def _at(words: str) -> str:
    return f", {words}" if words else ""


def _whole(value: float) -> str:
    """Return a difference in whole points; with a decimal where it rounds to none."""
    rounded = f"{100 * value:+.0f}".replace("-", "−")
    return POINTS.number(value) if rounded in ("+0", "−0") else rounded
