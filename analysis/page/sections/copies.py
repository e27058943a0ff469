"""How many copies: small panels of AUC by copies, by detector and by arm, and the numbers."""

from collections.abc import Sequence
from math import log2

from analysis.copy_bins import copies_middle, copies_order, is_dose
from analysis.metrics_table import Cell, CohortMetrics
from analysis.page.drawing.elements import Dot, round_limits
from analysis.page.drawing.panels import Line, LinePanel, Panels, draw_panels
from analysis.page.grids import copies_tables, copies_text, folded, interval
from analysis.page.parts import Columns, Note, Part, Picture, present
from analysis.page.table import Column, Entry, Table
from analysis.page.view import LOSS, MAX_ARMS, View, capital
from analysis.selection.ranking import reported_cell
from analysis.summary import copied, ends_text
from analysis.tables import TREND

_MAX_PANELS = 5
_MAX_COLUMNS = 5
"""A table of more stands below its picture."""


def copies_parts(view: View) -> list[Part]:
    """Return the section; nothing where no arm has several numbers of copies."""
    arms = [table for table in view.arms if len(dose_labels(table)) > 1]
    if not arms:
        return []
    sentence = Note(_sentence(view, arms[0]), "say")
    if len(arms) == 1:
        # The first screen has drawn it.
        return [sentence, *folded(copies_tables(arms[0], view.models_only, view.names))]
    shown = arms[:MAX_ARMS]
    table = _table(view, shown)
    wide = len(table.columns) > _MAX_COLUMNS
    picture = _picture(view, shown, 1180 if wide else 560)
    return present(sentence, *([picture, table] if wide else [Columns([picture, table], "answer")]))


def copies_picture(view: View) -> Picture | None:
    """Return small panels of AUC by copies: the chosen detector, the next ones, and loss."""
    table = view.best.table
    labels = dose_labels(table)
    if len(labels) < 2:
        return None
    names = [view.best.detector, *(name for name in view.shown if name != view.best.detector)]
    names = [name for name in names if dose_dots(view, table, name)]
    if view.best.detector not in names:
        return None
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
    cells = [*_dose_cells(table, view.best.detector).values()]
    members = ", ".join(f"{cell.n_members:,}" for cell in cells)
    where = f"{capital(view.arm)}. " if view.arm else ""
    return view.picture(
        "copies",
        "AUC by number of copies",
        f"{where}Bands: 95 %. n: {members} members + {cells[0].n_nonmembers:,}. Thin orange: "
        f"{view.name} again.",
        draw_panels(dose_panels(panels, labels, "copies of a member in the training stream"), 500),
    )


def dose_labels(table: CohortMetrics) -> list[str]:
    """Return the numbers of copies of an arm, fewest first."""
    return sorted(filter(is_dose, table.values("copies")), key=copies_order)


def dose_dots(view: View, table: CohortMetrics, detector: str) -> list[tuple[float, Dot]]:
    """Return a detector's AUC at each number of copies, placed by doublings."""
    words = view.words(table.cohort)
    return [
        (log2(1 + copies_middle(label)), dot)
        for label, cell in _dose_cells(table, detector).items()
        if (dot := view.dot(detector, cell, f"{copied(label)}, {words}".rstrip(", ")))
    ]


def dose_panels(panels: Sequence[LinePanel], labels: Sequence[str], x_label: str) -> Panels:
    """Return panels of AUC over numbers of copies on one scale."""
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


def _sentence(view: View, table: CohortMetrics) -> str:
    """Say whether the AUC rises with copies, and what it is at each number of them."""
    name = view.best.detector
    known = _dose_cells(table, name)
    trend = table.get(name, selection=view.best.selection, metric=TREND)
    verb = "is not shown to change"
    if trend is not None and trend.available:
        verb = "rises" if trend.low > 0 else "falls" if trend.high < 0 else verb
    where = f"{capital(view.words(table.cohort))}: the" if view.words(table.cohort) else "The"
    labels = list(known)
    if len(labels) > 5:
        labels = [*labels[:2], *labels[-2:]]
    said = ", ".join(f"{ends_text(known[label])} with {copies_text(label)}" for label in labels)
    listed = f": {said}" if said else ""
    return f"{where} AUC of {view.name} {verb} with the number of copies{listed}."


def _picture(view: View, arms: list[CohortMetrics], width: float) -> Picture:
    labels = sorted({label for table in arms for label in dose_labels(table)}, key=copies_order)
    ghost = Line(dose_dots(view, arms[0], view.best.detector), "ghost")
    panels = []
    for at, (table, (group, head)) in enumerate(zip(arms, view.heads(arms), strict=True)):
        line = Line(dose_dots(view, table, view.best.detector), "chosen")
        titles = (group, capital(head)) if group else (capital(head), "")
        panels.append(LinePanel(titles[0], [ghost, line] if at else [line], titles[1]))
    caption = f"{view.name}; bands are 95 % intervals, each point against all non-members."
    if len(arms) > 1:
        caption += " Thin line: the first panel again."
    drawn = draw_panels(dose_panels(panels, labels, "copies"), width)
    return view.picture("copies-by-arm", "The chosen detector in each arm", caption, drawn)


def _table(view: View, arms: list[CohortMetrics]) -> Table:
    labels = sorted({label for table in arms for label in dose_labels(table)}, key=copies_order)
    name = view.best.detector
    rows = []
    for table in arms:
        cells = {label: reported_cell(table, name, copies=label) for label in labels}
        members = ", ".join(f"{cell.n_members:,}" for cell in cells.values() if cell)
        kind = "chosen" if table is view.best.table else ""
        head = Entry(view.words(table.cohort), notes=(f"n {members}",), kind=kind)
        rows.append((head, *(interval(cells[label]) for label in labels)))
    first = reported_cell(arms[0], name)
    others = f"; {first.n_nonmembers:,} non-members" if first else ""
    return Table(
        title=f"{view.name} by number of copies",
        columns=(
            Column("Arm"),
            *(Column(copies_text(label), right=True) for label in labels),
        ),
        rows=tuple(rows),
        caption=f"AUC with its 95 % interval. n: members with each number of copies{others}.",
    )
