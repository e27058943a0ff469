"""How many copies: small panels of AUC by copies, by detector and by arm, and the numbers."""

from dataclasses import replace

from analysis.copy_bins import copies_middle, copies_order, is_dose
from analysis.findings import Findings
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import Crossed, Head, cross, doublings
from analysis.page.drawing.picture import Picture, picture
from analysis.page.grids import copies_tables, copies_text, folded
from analysis.page.parts import Columns, Note, Part, present
from analysis.page.table import Table
from analysis.page.view import MAX_ARMS, View, capital
from analysis.tables import TREND
from analysis.unit import AUC

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
    crossed = _by_arm(view)
    wide = len(crossed.columns) >= _MAX_COLUMNS
    parts = present(_picture(view, crossed, 1180 if wide else 560), _table(view, arms[0], crossed))
    return present(sentence, *(parts if wide else [Columns(parts, "answer")]))


def copies_picture(view: View) -> Picture | None:
    """Return small panels of AUC by copies: the chosen detector, the next ones, and loss."""
    table = view.best.table
    names = [name for name in view.shown if _dose_cells(table, name)]
    if view.best.detector not in names or len(dose_labels(table)) < 2:
        return None
    crossed = cross(
        ((name, label) for name in view.few(names) for label in dose_labels(table)),
        lambda item: view.head(item[0], view.kind(item[0])),
        lambda item: _dose_head(item[1]),
        unit=AUC,
        cell=lambda item: table.reported_row(item[0], copies=item[1]),
    )
    panels = crossed.panels("AUC by number of copies", "copies of a member in the training stream")
    if panels is None:
        return None
    cells = [*_dose_cells(table, view.best.detector).values()]
    members = ", ".join(f"{cell.members:,}" for cell in cells)
    where = f"{capital(view.arm)}. " if view.arm else ""
    return picture(
        "copies",
        "AUC by number of copies",
        f"{where}Bands: 95 %. n: {members} members + {cells[0].nonmembers:,}. Thin orange: "
        f"{view.name} again.",
        panels,
        500,
        crossed.records("detector", "copies"),
    )


def dose_labels(table: Findings) -> list[str]:
    """Return the numbers of copies of an arm, fewest first."""
    return sorted(filter(is_dose, table.values("copies")), key=copies_order)


def _dose_head(label: str) -> Head:
    return Head(
        label.replace("-", "–"),
        said=copies_text(label),
        name=label,
        at=doublings(copies_middle(label)),
    )


def _dose_cells(table: Findings, detector: str) -> dict[str, Estimate]:
    cells = {label: table.reported(detector, copies=label) for label in dose_labels(table)}
    return {label: cell for label, cell in cells.items() if cell is not None and cell.available}


def _sentence(view: View, table: Findings) -> str:
    """Say whether the AUC rises with copies, and what it is at each number of them."""
    name = view.best.detector
    known = _dose_cells(table, name)
    trend = table.get(detector=name, selection=view.best.selection, metric=TREND)
    verb = "is not shown to change"
    if trend is not None and trend.available:
        verb = "rises" if trend.low > 0 else "falls" if trend.high < 0 else verb
    where = f"{capital(view.words(table.cohort))}: the" if view.words(table.cohort) else "The"
    labels = list(known)
    if len(labels) > 5:
        labels = [*labels[:2], *labels[-2:]]
    said = ", ".join(f"{known[label].text()} with {copies_text(label)}" for label in labels)
    listed = f": {said}" if said else ""
    return f"{where} AUC of {view.name} {verb} with the number of copies{listed}."


def _by_arm(view: View) -> Crossed:
    """Return the chosen detector by arm and number of copies."""
    arms = [table for table in view.arms if len(dose_labels(table)) > 1]
    labels = sorted({label for table in arms for label in dose_labels(table)}, key=copies_order)
    name = view.best.detector
    heads = {}
    for table, (group, head) in zip(arms, view.heads(arms), strict=True):
        cells = [table.reported(name, copies=label) for label in labels]
        members = ", ".join(f"{cell.members:,}" for cell in cells if cell)
        heads[table.cohort] = Head(
            capital(head), "chosen" if table is view.best.table else "", group,
            f"n {members}", view.words(table.cohort), table.cohort.label(),
        )  # fmt: skip
    crossed = cross(
        ((table, label) for table in arms for label in labels),
        lambda item: heads[item[0].cohort],
        lambda item: _dose_head(item[1]),
        unit=AUC,
        cell=lambda item: item[0].reported_row(name, copies=item[1]),
    )
    rows = crossed.rows[:MAX_ARMS]
    known = {head for row, head in crossed.cells if row in rows}
    return replace(crossed, rows=rows, columns=[one for one in crossed.columns if one in known])


def _picture(view: View, crossed: Crossed, width: float) -> Picture | None:
    panels = crossed.panels(f"AUC of {view.name} by number of copies", "copies", kind="chosen")
    caption = f"{view.name}; bands are 95 % intervals, each point against all non-members."
    if len(crossed.rows) > 1:
        caption += " Thin line: the first panel again."
    title = "The chosen detector in each arm"
    records = crossed.records("arm", "copies")
    return picture("copies-by-arm", title, caption, panels, width, records) if panels else None


def _table(view: View, arm: Findings, crossed: Crossed) -> Table:
    first = arm.reported(view.best.detector)
    others = f"; {first.nonmembers:,} non-members" if first else ""
    return crossed.table(
        f"{view.name} by number of copies",
        "Arm",
        f"AUC with its 95 % interval. n: members with each number of copies{others}.",
    )
