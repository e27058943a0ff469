"""Tables of intervals: a row for each detector, a column for each arm, split to fit a page.

A table is first made with a line for each arm, then turned. The number of examples behind a line
stands in its head, and also in each cell that was measured on other examples: no value is shown
with the n of another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from analysis.adjusted import ADJUSTED_AUC
from analysis.arm import MODEL_FREE, Cohort
from analysis.arm_words import arm_words
from analysis.copy_bins import copies_order, copies_start
from analysis.findings import Findings
from analysis.intervals.estimate import Estimate
from analysis.page.parts import Fold, Part
from analysis.page.table import Column, Row, Table, with_noun
from analysis.selection.ranking import common_rows, rank_detectors, tune_auc
from analysis.summary import NO_NAMES, Names
from analysis.unit import ABSENT, AUC, Entry

MAX_COLUMNS = 5
"""Columns beside the row heads that fit on 17 cm of paper."""
MAX_ROWS = 16
"""Rows that are shown without a fold."""
OPEN_ROWS = 12
"""Rows before the fold of a longer table."""
_COUNTS_NOTE = (
    "Under each head: members + non-members, seeds; a value of other rows shows its own counts."
)

Line = tuple[Column, Sequence[Entry]]
"""What becomes a column: its head, and one place a detector."""


def table_line(
    head: str, cells: Mapping[str, Estimate | None], tune: Mapping[str, float] | None = None
) -> Line:
    """Return one line of a table.

    Args:
        head: the name of the line.
        cells: by detector, in the order of the columns.
        tune: AUCs on the `tune` rows, by which the best detector is marked if its interval is
            above 0.5; None marks none.
    """
    measured = {name: cell for name, cell in cells.items() if name not in MODEL_FREE}
    rows = common_rows(measured if any(measured.values()) else cells)
    first = None if tune is None else next(iter(rank_detectors(cells, tune)), None)
    return Column(head, right=True, note=_row_counts([*cells.values()], rows)), [
        AUC.entry(
            cell,
            best=name == first and cell is not None and cell.low > 0.5,
            n=_own_counts(cell, rows),
        )
        for name, cell in cells.items()
    ]


def tables_by_detector(
    title: str,
    detectors: Sequence[str],
    lines: Sequence[Line],
    caption: str,
    names: Names = NO_NAMES,
) -> list[Table]:
    """Return lines as tables of a row a detector; detectors without any value are left out.

    Returns:
        As few tables as hold all lines; none where there is nothing to show.
    """
    rows: list[Row] = [
        (names.get(name, name), *(entries[at] for _, entries in lines))
        for at, name in enumerate(detectors)
    ]
    heads = (Column("Detector"), *(head for head, _ in lines))
    table = Table(title=title, columns=heads, rows=_with_value(rows), caption=caption)
    return split_table(table) if table.rows else []


def split_table(table: Table) -> list[Table]:
    """Cut a table into tables of at most `MAX_COLUMNS` columns, of about the same width."""
    first, *columns = table.columns
    count = -(-len(columns) // MAX_COLUMNS) or 1
    ends = [round(len(columns) * at / count) for at in range(count + 1)]
    return [
        replace(
            table,
            title=table.title if count == 1 else f"{table.title}, {at + 1} of {count}",
            columns=(first, *columns[start:stop]),
            rows=_with_value([(row[0], *row[1 + start : 1 + stop]) for row in table.rows]),
            caption=table.caption if at == 0 else "As above.",
        )
        for at, (start, stop) in enumerate(pairwise(ends))
    ]


def folded(tables: Sequence[Table]) -> list[Part]:
    """Return tables with what is low in a long one folded away."""
    parts: list[Part] = []
    for table in tables:
        if len(table.rows) <= MAX_ROWS:
            parts.append(table)
            continue
        rest = replace(
            table,
            title=f"{table.title}, continued",
            rows=table.rows[OPEN_ROWS:],
            caption="As above.",
        )
        others = f"{table.title}: the other {len(rest.rows)} detectors"
        parts += [replace(table, rows=table.rows[:OPEN_ROWS]), Fold(others, [rest])]
    return parts


def _with_value(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if any(entry != ABSENT for entry in row[1:]))


def _own_counts(cell: Estimate | None, rows: tuple[int, int]) -> str:
    if cell is None or (cell.members, cell.nonmembers) == rows:
        return ""
    return f"{cell.members:,} + {cell.nonmembers:,}"


def _row_counts(cells: Sequence[Estimate | None], rows: tuple[int, int]) -> str:
    seeds = [
        cell.seeds for cell in cells if cell is not None and (cell.members, cell.nonmembers) == rows
    ]
    return f"{rows[0]:,} + {rows[1]:,}, {with_noun(max(seeds), 'seed')}" if seeds else ""


def adjusted_tables(
    tables: Sequence[Findings], detectors: Sequence[str], names: Names = NO_NAMES
) -> list[Table]:
    """All trained arms with the luck of the pool taken out; none where no base model was scored."""
    lines = []
    for table in tables:
        cells = {name: table.reported(name, metric=ADJUSTED_AUC) for name in detectors}
        if any(cell is not None for cell in cells.values()):
            lines.append(table_line(arm_words(table.cohort.axes) or "all members", cells))
    return tables_by_detector(
        "Detectors and arms, adjusted by the base model",
        detectors,
        lines,
        "AUC less what the luck of the pool added to it, with its interval; tuned settings, all "
        "datasets pooled, members with at least one copy. Some "
        "texts are easier for a detector whoever trained on them, and which of them became members "
        "is drawn. The base model saw none of them, so what its AUC on the same rows differs from "
        "0.5 by is that luck; a share of it is taken off, the one that leaves the least variance "
        "(adjusted = AUC − weight × (base AUC − 0.5); findings.parquet has base AUC and weight). "
        "Sides that differ in truth are taken for luck as well: look at the checks first. "
        f"{_COUNTS_NOTE}",
        names,
    )


def dataset_tables(table: Findings, detectors: Sequence[str]) -> list[Table]:
    """One arm by dataset; nothing where there is one, which the table of arms shows."""
    datasets = table.values("dataset")
    if len(datasets) < 3:
        return []
    return _one_arm(
        table,
        detectors,
        "By dataset",
        {"all datasets" if name == "all" else name: {"dataset": name} for name in datasets},
        "Tuned settings, members with at least one copy.",
        NO_NAMES,
    )


def copies_tables(
    table: Findings, detectors: Sequence[str], names: Names = NO_NAMES
) -> list[Table]:
    """One arm by realised copies."""
    labels: dict[tuple[Estimate | None, ...], str] = {}
    for label in sorted(table.values("copies"), key=copies_order):
        # Where all members have eight copies, `all`, `8` and `4+` are one and the same.
        cells = tuple(table.reported(name, copies=label) for name in detectors)
        labels.setdefault(cells, label)
    return _one_arm(
        table,
        detectors,
        "By realised copies",
        {copies_text(label): {"copies": label} for label in labels.values()},
        "Tuned settings, all datasets pooled. Numbers of copies with too few members are left "
        "out; 0 copies: members that drew none.",
        names,
    )


def in_arm(cohort: Cohort) -> str:
    """Return ` (ARM)`; nothing where there is but one."""
    return f" ({words})" if (words := arm_words(cohort.axes)) else ""


def _one_arm(
    table: Findings,
    detectors: Sequence[str],
    title: str,
    parts: Mapping[str, Mapping[str, str]],
    caption: str,
    names: Names,
) -> list[Table]:
    """Return one arm's tuned AUCs; a line's head, and which part of the rows it is of."""
    tune = {name: tune_auc(table, name) for name in detectors}
    lines = [
        table_line(head, {name: table.reported(name, **part) for name in detectors}, tune)
        for head, part in parts.items()
    ]
    return tables_by_detector(
        f"{title}{in_arm(table.cohort)}",
        detectors,
        lines,
        f"AUC with its interval. {caption} {_COUNTS_NOTE}",
        names,
    )


def copies_text(label: str) -> str:
    """Return a number of copies as a head: `1 copy`, `5 to 8 copies`, `4 or more`."""
    if label == "all":
        return "1 or more copies"
    if label.endswith("+"):
        return f"{copies_start(label)} or more"
    return "1 copy" if label == "1" else f"{label.replace('-', ' to ')} copies"
