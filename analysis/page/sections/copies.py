"""The section on copies: panels of AUC by copies, by detector and by arm, and the numbers."""

from collections.abc import Iterable, Mapping, Sequence

from analysis.copy_bins import copies_middle, copies_order, is_dose
from analysis.findings import Findings
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AxisHeading, Crossed, auc_tables, cross, doublings
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import OPEN_ROWS, Part, Section, answer, opened
from analysis.page.table import Table, copies_text
from analysis.page.view import MAX_ARMS, ReportView, arm_suffix, capital
from analysis.selection.ranking import tune_auc
from analysis.summary import NO_NAMES, Names
from analysis.tables import TREND
from analysis.unit import AUC

_MAX_COLUMNS = 5
"""A table of more rows is below its picture."""
_SLACK = 16
"""Rows that are shown without a fold."""
COUNTS_NOTE = (
    "Under each head: members + non-members, seeds; a value over other rows shows its own counts."
)


def copies_section(view: ReportView) -> Section | None:
    """Return the section; None if no arm has several numbers of copies."""
    arms = [table for table in view.arms if len(_dose_labels(table)) > 1]
    if not arms:
        return None
    titles = "copies", "Copies", "How many copies?", _sentence(view, arms[0])
    if len(arms) == 1:
        # The first screen already has the picture.
        tables = copies_tables(arms[0], view.models_only, view.names)
        return answer(*titles, extra=collapsed(tables))
    crossed = _cross_arms(view, arms)
    first = arms[0].reported(view.best.detector)
    others = f"; {first.nonmembers:,} non-members" if first else ""
    table = crossed.table(
        f"{view.name} by number of copies",
        "Arm",
        f"AUC with its 95 % interval. n: members with each number of copies{others}.",
    )
    return answer(*titles, _arms_picture(view, crossed), table)


def collapsed(tables: Iterable[Table]) -> list[Part]:
    """Return tables of detectors; the lower rows of long ones are folded away."""
    return [
        part
        for table in tables
        for part in opened(table, OPEN_ROWS if len(table.rows) > _SLACK else _SLACK, "detectors")
    ]


def copies_picture(view: ReportView) -> Picture | None:
    """Return small panels of AUC by copies: the chosen detector, the next ones, and `loss`."""
    table, labels = view.best.table, _dose_labels(view.best.table)
    names = [name for name in view.shown if _dose_cells(table, name)]
    if view.best.detector not in names or len(labels) < 2:
        return None
    crossed = cross(
        ((name, label) for name in view.few(names) for label in labels),
        lambda item: view.head(item[0], view.kind(item[0])),
        lambda item: _dose_head(item[1]),
        unit=AUC,
        cell=lambda item: table.reported_row(item[0], copies=item[1]),
    )
    cells = [*_dose_cells(table, view.best.detector).values()]
    members = ", ".join(f"{cell.members:,}" for cell in cells)
    title = "AUC by number of copies"
    return picture(
        "copies",
        title,
        f"{view.where}Bands: 95 %. n: {members} members + {cells[0].nonmembers:,}. Thin orange: "
        f"{view.name} again.",
        crossed.panels(title, "copies of a member in the training stream"),
        500,
        crossed.records("detector", "copies"),
    )


def _dose_labels(table: Findings) -> list[str]:
    """Return the numbers of copies of an arm, fewest first."""
    return sorted(filter(is_dose, table.values("copies")), key=copies_order)


def _dose_head(label: str) -> AxisHeading:
    at = doublings(copies_middle(label))
    return AxisHeading(label.replace("-", "–"), said=copies_text(label), name=label, at=at)


def _dose_cells(table: Findings, detector: str) -> dict[str, Estimate]:
    cells = {label: table.reported(detector, copies=label) for label in _dose_labels(table)}
    return {label: cell for label, cell in cells.items() if cell is not None and cell.available}


def _sentence(view: ReportView, table: Findings) -> str:
    """Return a sentence on the AUC's trend with copies, and the AUC at each copy count."""
    name = view.best.detector
    cells = _dose_cells(table, name)
    trend = table.get(detector=name, selection=view.best.selection, metric=TREND)
    verb = "is not shown to change"
    if trend is not None and trend.available:
        verb = "rises" if trend.low > 0 else "falls" if trend.high < 0 else verb
    subject = f"{capital(view.words(table.cohort))}: the" if view.words(table.cohort) else "The"
    values = [f"{cell.text()} with {copies_text(label)}" for label, cell in cells.items()]
    if len(values) > 5:
        values = [*values[:2], *values[-2:]]
    values_text = f": {', '.join(values)}" if values else ""
    return f"{subject} AUC of {view.name} {verb} with the number of copies{values_text}."


def _cross_arms(view: ReportView, arms: list[Findings]) -> Crossed:
    """Return the chosen detector by arm and number of copies."""
    dose_labels = dict.fromkeys(label for table in arms for label in _dose_labels(table))
    labels = sorted(dose_labels, key=copies_order)
    name = view.best.detector
    heads = {}
    for table, (group, head) in zip(arms, view.heads(arms), strict=True):
        cells = [table.reported(name, copies=label) for label in labels]
        heads[table.cohort] = AxisHeading(
            capital(head),
            "chosen" if table is view.best.table else "",
            group,
            f"n {', '.join(f'{cell.members:,}' for cell in cells if cell)}",
            view.words(table.cohort),
            table.cohort.label(),
        )
    shown_arms = arms[:MAX_ARMS]
    columns = [
        _dose_head(label)
        for label in labels
        if any(table.reported_row(name, copies=label) for table in shown_arms)
    ]
    return cross(
        ((table, label) for table in arms for label in labels),
        lambda item: heads[item[0].cohort],
        lambda item: _dose_head(item[1]),
        unit=AUC,
        cell=lambda item: item[0].reported_row(name, copies=item[1]),
        displayed=([heads[table.cohort] for table in shown_arms], columns),
    )


def _arms_picture(view: ReportView, crossed: Crossed) -> Picture | None:
    caption = f"{view.name}; bands are 95 % intervals, each point against all non-members."
    if len(crossed.rows) > 1:
        caption += " Thin line: the first panel again."
    return picture(
        "copies-by-arm",
        "The chosen detector in each arm",
        caption,
        crossed.panels(f"AUC of {view.name} by number of copies", "copies", kind="chosen"),
        1180 if len(crossed.columns) >= _MAX_COLUMNS else 560,
        crossed.records("arm", "copies"),
    )


def copies_tables(
    table: Findings, detectors: Sequence[str], names: Names = NO_NAMES
) -> list[Table]:
    """Return the AUCs of one arm by realised copies."""
    labels: dict[tuple[Estimate | None, ...], str] = {}
    for label in sorted(table.values("copies"), key=copies_order):
        # Where all members have eight copies, `all`, `8` and `4+` are one and the same.
        cells = tuple(table.reported(name, copies=label) for name in detectors)
        labels.setdefault(cells, label)
    return _tuned_tables(
        table,
        detectors,
        "By realised copies",
        {copies_text(label): {"copies": label} for label in labels.values()},
        "Tuned settings, all datasets pooled. Copy counts with too few members are "
        "omitted; 0 copies: members that drew none.",
        names,
    )


def dataset_tables(table: Findings, detectors: Sequence[str]) -> list[Table]:
    """Return the AUCs of one arm by dataset; none for one dataset, which the table of arms has."""
    datasets = table.values("dataset")
    if len(datasets) < 3:
        return []
    return _tuned_tables(
        table,
        detectors,
        "By dataset",
        {"all datasets" if name == "all" else name: {"dataset": name} for name in datasets},
        "Tuned settings, members with at least one copy.",
        NO_NAMES,
    )


def _tuned_tables(
    table: Findings,
    detectors: Sequence[str],
    title: str,
    divisions: Mapping[str, Mapping[str, str]],
    caption: str,
    names: Names,
) -> list[Table]:
    """Return the tuned AUCs of one arm, a column for each division of the rows."""
    return auc_tables(
        f"{title}{arm_suffix(table.cohort)}",
        detectors,
        {
            head: {name: table.reported_row(name, **division) for name in detectors}
            for head, division in divisions.items()
        },
        f"AUC with its interval. {caption} {COUNTS_NOTE}",
        names=names,
        tune={name: tune_auc(table, name) for name in detectors},
    )
