"""The first screen: two pictures, a badge for each check, and what each factor does in points.

A point is a hundredth of AUC. Nothing is picked here: the arms and detectors are those of the
headline, a factor's change is the one that ends or begins in the headline's arm.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from analysis.checks.chance import CHANCE, MARGIN, outer_ends, possible_aucs
from analysis.checks.validity import Check
from analysis.copy_bins import copies_middle, copies_order, is_dose
from analysis.metrics_table import Cell, CohortMetrics
from analysis.page.contrasts import change_words, headline_contrasts, level_cell
from analysis.page.drawing.marks import Dot, round_limits
from analysis.page.drawing.matrix import AUC_AXIS, Matrix, MatrixColumn, draw_matrix
from analysis.page.drawing.panels import Line, LinePanel, Panels, draw_panels
from analysis.page.inputs import PageInputs
from analysis.page.parts import (
    Badge,
    Badges,
    Columns,
    Gain,
    Gains,
    Part,
    Picture,
    present,
)
from analysis.page.sections.detector import differences_of
from analysis.page.view import LOSS, MAX_ARMS, View, capital, points, points_interval, short_counts
from analysis.selection.ranking import reported_cell
from analysis.summary import copied, find_doses

CHECKS = "checks"
"""Anchor of the section on the checks."""
_MAX_PANELS = 5
_MAX_GAINS = 3
_LEFT, _RIGHT = 640.0, 500.0
_SHORT_NAMES = {
    "Audit of the training streams": "Training streams",
    "What the models were fed": "Fed to the models",
    "Audit of the background's text": "Background",
    "Members that drew no copy": "No copy drawn",
}


def first_parts(view: View, checks: Sequence[Check]) -> list[Part]:
    """Return what stands below the headline."""
    arms, copies = arms_picture(view), copies_picture(view)
    pictures = present(arms, copies)
    return present(
        Columns(pictures, "pictures" if len(pictures) > 1 else ""),
        badges(checks, view.inputs),
        Gains(shown) if (shown := gains(view)) else None,
    )


def arms_picture(view: View) -> Picture:
    """Return every detector in the arms that are shown: number, dot and interval."""
    arms = view.arms[:MAX_ARMS]
    names = view.shown
    columns = []
    for table, (group, head) in zip(arms, view.heads(arms), strict=True):
        words = view.words(table.cohort)
        cells = {name: reported_cell(table, name) for name in names}
        loss = cells.get(LOSS)
        columns.append(
            MatrixColumn(
                head,
                [
                    view.dot(name, cell, words, bold=view.bold.get(table.cohort) == name)
                    for name, cell in cells.items()
                ],
                note=short_counts(cells.get(view.best.detector)),
                group=group,
                rule=loss.value if loss is not None else float("nan"),
            )
        )
    lows = [dot.low for column in columns for dot in column.dots if isinstance(dot, Dot)]
    low, _ = round_limits(lows, 0.1, AUC_AXIS.low)
    matrix = Matrix(
        rows=view.rows(names),
        columns=columns,
        axis=AUC_AXIS._replace(low=low),
        label=f"AUC of {len(names)} detectors in {len(arms)} arms with intervals; "
        f"{view.name} has {view.best.cell.value:.2f} in the arm of the headline",
        row_height=min(26.0, max(16.0, 290 / len(names))),
    )
    caption = "Dot and line: AUC with its 95 % interval; dashed: Loss. Bold: best on the tune split"
    caption += " of its arm. n: members + non-members. Rows by the first column."
    more = [
        f"{len(view.arms) - len(arms)} more arms" if len(view.arms) > len(arms) else "",
        f"{left} more detectors" if (left := len(view.models_only) - len(names)) else "",
    ]
    if any(more):
        caption += f" {' and '.join(filter(None, more))}: all results, below."
    title = "AUC by detector and arm" if len(arms) > 1 else "AUC by detector"
    return view.picture("detectors", title, caption, draw_matrix(matrix, _LEFT))


def copies_picture(view: View) -> Picture | None:
    """Return small panels of AUC by copies: the chosen detector, the next ones, and loss."""
    table = view.best.table
    labels = dose_labels(table)
    if len(labels) < 2:
        return None
    names = [view.best.detector, *(name for name in view.shown if name != view.best.detector)]
    shown = names[:_MAX_PANELS]
    if LOSS in names and LOSS not in shown:
        shown = [*shown[:-1], LOSS]
    chosen = Line(dose_dots(view, table, view.best.detector), "ghost")
    panels = []
    for name in shown:
        kind = view.kind(name)
        line = Line(dose_dots(view, table, name), kind)
        lines = [line] if kind == "chosen" else [chosen, line]
        note = {"chosen": "chosen", "baseline": "baseline"}.get(kind, "")
        panels.append(LinePanel(view.title(name), lines, note))
    first = next((cell for cell in _dose_cells(table, view.best.detector).values()), None)
    members = ", ".join(
        f"{cell.n_members:,}" for cell in _dose_cells(table, view.best.detector).values()
    )
    where = f"{capital(view.arm)}. " if view.arm else ""
    others = f" + {first.n_nonmembers:,}" if first else ""
    return view.picture(
        "copies",
        "AUC by number of copies",
        f"{where}Bands: 95 %. n: {members} members{others}. Thin orange: {view.name} again.",
        draw_panels(dose_panels(panels, labels, "copies of a member in the training stream"), 500),
    )


def dose_labels(table: CohortMetrics) -> list[str]:
    """Return the numbers of copies of an arm, fewest first."""
    return sorted(filter(is_dose, table.values("copies")), key=copies_order)


def dose_dots(view: View, table: CohortMetrics, detector: str) -> list[tuple[float, Dot]]:
    """Return a detector's AUC at each number of copies, placed by doublings."""
    from math import log2

    words = view.words(table.cohort)
    return [
        (log2(1 + copies_middle(label)), dot)
        for label, cell in _dose_cells(table, detector).items()
        if (dot := view.dot(detector, cell, f"{copied(label)}, {words}".rstrip(", ")))
    ]


def dose_panels(panels: Sequence[LinePanel], labels: Sequence[str], x_label: str) -> Panels:
    """Return panels of AUC over numbers of copies on one scale."""
    from math import log2

    dots = [dot for panel in panels for line in panel.lines for _, dot in line.points]
    low, high = round_limits([end for dot in dots for end in (dot.low, dot.high)], 0.1, 0.5, 1.0)
    ticks = [round(low + at / 10, 1) for at in range(round((high - low) * 10) + 1)]
    said = "; ".join(
        f"{panel.title} {', '.join(dot.text for _, dot in panel.lines[-1].points)}"
        for panel in panels
    )
    return Panels(
        panels=panels,
        x=[(log2(1 + copies_middle(label)), label.replace("-", "–")) for label in labels],
        y=[(value, f"{value:.1f}") for value in ticks],
        centre=0.5,
        x_label=x_label,
        label=f"AUC by number of copies ({', '.join(labels)}): {said}",
        height=330.0,
    )


def _dose_cells(table: CohortMetrics, detector: str) -> dict[str, Cell]:
    cells = {label: reported_cell(table, detector, copies=label) for label in dose_labels(table)}
    return {label: cell for label, cell in cells.items() if cell is not None and cell.available}


def badges(checks: Sequence[Check], inputs: PageInputs) -> Badges:
    """Return a badge a check: its verdict, its number, and what a pass needs."""
    return Badges(
        [
            Badge(_SHORT_NAMES.get(one.name, one.name), one.verdict, _badge_lines(one, inputs))
            for one in checks
        ],
        CHECKS,
    )


def _badge_lines(check: Check, inputs: PageInputs) -> list[str]:
    name = _SHORT_NAMES.get(check.name, check.name)
    if check.verdict == "not measured":
        return ["not measured", "nothing to measure"]
    if name == "Training streams":
        found, planned = (
            sum(int(audit.get(key, 0)) for audit in inputs.audits.values())
            for key in ("copies found", "copies planned")
        )
        return [f"{check.verdict}: {found:,} of {planned:,}", "copies found (needs all)"]
    if name == "Fed to the models":
        altered, planned = (
            sum(getattr(one, key) for one in inputs.copies.values())
            for key in ("altered", "planned")
        )
        return [f"{check.verdict}: {planned - altered:,} of {planned:,}", "copies token for token"]
    if name == "Background":
        facts = [one for _, one in inputs.backgrounds]
        left = sum(one.offending - one.dropped for one in facts)
        return [
            f"{check.verdict}: {left:,} of {sum(one.documents for one in facts):,}",
            "documents overlap (needs 0)",
        ]
    pooled = [row.cell for row in check.rows if row.pooled and row.cell.available]
    ends = outer_ends([possible_aucs(cell) for cell in pooled])
    return [
        f"{check.verdict}: {ends.low:.2f}–{ends.high:.2f}",
        f"a pass needs {CHANCE - MARGIN:.2f}–{CHANCE + MARGIN:.2f}",
    ]


def gains(view: View) -> list[Gain]:
    """Return what copies, the swept axes and the choice of the detector do, as far as is known."""
    found = [copies_gain(view), *(axis_gain(view, row) for row in headline_contrasts(view))]
    shown = [one for one in found if one is not None][:_MAX_GAINS]
    if len(shown) < _MAX_GAINS and (over_loss := _loss_gain(view)):
        shown.append(over_loss)
    return shown


def copies_gain(view: View) -> Gain | None:
    """Return what the most copies have over the fewest."""
    doses = find_doses(view.tables, view.best)
    if len(doses) < 2:
        return None
    few, many = doses[0], doses[-1]
    gap = many.cell.value - few.cell.value
    return Gain(
        _whole(gap),
        f"{_copies(many.label)} instead of {few.label.replace('-', ' to ')}.",
        f"AUC {few.cell.value:.2f} [{few.cell.low:.2f}, {few.cell.high:.2f}] becomes "
        f"{many.cell.value:.2f} [{many.cell.low:.2f}, {many.cell.high:.2f}]{_at(view.arm)}.",
        sure=few.cell.high < many.cell.low or many.cell.high < few.cell.low,
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
        f"{_whole_ends(row['low'], row['high'])}{may}{becomes}{_at(where)}.",
        sure=not row["low"] <= 0 <= row["high"],
    )


def _loss_gain(view: View) -> Gain | None:
    cell = differences_of(view).get(view.best.detector, {}).get(LOSS)
    if cell is None or not cell.available:
        return None
    may = "" if not cell.contains(0) else ", which may be none"
    return Gain(
        _whole(cell.value),
        f"{view.name} instead of Loss.",
        f"{_whole_ends(cell.low, cell.high)}{may}; paired on the same texts{_at(view.arm)}.",
        sure=not cell.contains(0),
    )


def _at(words: str) -> str:
    return f", {words}" if words else ""


def _copies(label: str) -> str:
    return "1 copy" if label == "1" else f"{label.replace('-', ' to ')} copies"


def _whole(value: float) -> str:
    """Return a difference in whole points; with a decimal where it rounds to none."""
    rounded = f"{100 * value:+.0f}".replace("-", "−")
    return points(value) if rounded in ("+0", "−0") else rounded


def _whole_ends(low: float, high: float) -> str:
    return points_interval(low, high)
