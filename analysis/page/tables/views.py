"""Tables of the page as plain rows of cells, ready for the template."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analysis.adjusted import ADJUSTED_AUC
from analysis.arm import MODEL_FREE, axis_column
from analysis.copy_bins import copies_order
from analysis.metrics_table import Cell, CohortMetrics
from analysis.page.tables.grid import (
    Grid,
    GridRow,
    Head,
    ShownCell,
    split_table,
    table_line,
    tables_by_detector,
    without_best,
)
from analysis.results import Analysis
from analysis.selection.ranking import reported_cell
from analysis.summary import Headline
from analysis.tables import AUC

_COUNTS_NOTE = (
    "Under each head: members + non-members, seeds; a value of other rows shows its own counts."
)


class DifferenceRow(NamedTuple):
    """One detector's paired AUC differences."""

    detector: str
    setting: str
    to_best: Cell | None
    to_loss: Cell | None


def detector_order(best: CohortMetrics, tables: Sequence[CohortMetrics]) -> list[str]:
    """Return all detectors, by falling tuned AUC in the headline's arm, controls last."""
    names = dict.fromkeys(name for table in tables for name in table.values("detector"))

    def sort_key(name: str) -> tuple[bool, float]:
        cell = reported_cell(best, name)
        return (name in MODEL_FREE, -cell.value if cell is not None and cell.available else 9.0)

    return sorted(names, key=sort_key)


def arms_grids(
    tables: Sequence[CohortMetrics], detectors: Sequence[str], selection: str
) -> list[Grid]:
    """All arms, all datasets pooled: one column an arm, one row a detector."""
    lines = []
    for table in sorted(tables, key=lambda table: table.cohort.model != "contaminated"):
        cells = [_selected(table, name, selection) for name in detectors]
        model = "" if table.cohort.model == "contaminated" else f"{table.cohort.model} model"
        arm = table.cohort.label()
        row = table_line(arm or model or "all members", model if arm else "", detectors, cells)
        lines.append(without_best(row) if model else row)
    return tables_by_detector(
        f"Detectors and arms, {selection} settings",
        detectors,
        lines,
        "AUC with its interval; all datasets pooled (mean of the datasets' AUCs, "
        "weighted by members), members with at least one copy. Bold: the best of an arm, with "
        "the highest AUC on the tune split, of those on the rows that most detectors share, where "
        "its interval is above 0.5. "
        f"{_COUNTS_NOTE}",
    )


def adjusted_grids(tables: Sequence[CohortMetrics], detectors: Sequence[str]) -> list[Grid]:
    """All trained arms with the luck of the pool taken out; none where no base model was scored."""
    lines = []
    for table in tables:
        cells = [
            table.get(name, selection="tuned", metric=ADJUSTED_AUC)
            or table.get(name, metric=ADJUSTED_AUC)
            for name in detectors
        ]
        if any(cell is not None for cell in cells):
            lines.append(table_line(table.cohort.label() or "all members", "", detectors, cells))
    return tables_by_detector(
        "Detectors and arms, adjusted by the base model",
        detectors,
        [without_best(line) for line in lines],
        "AUC less what the luck of the pool added to it, with its interval; else as above. Some "
        "texts are easier for a detector whoever trained on them, and which of them became members "
        "is drawn. The base model saw none of them, so what its AUC on the same rows differs from "
        "0.5 by is that luck; a share of it is taken off, the one that leaves the least variance "
        "(adjusted = AUC − weight × (base AUC − 0.5); findings.parquet has base AUC and weight). "
        "Sides that differ in truth are taken for luck as well: look at the checks first.",
    )


def grids_differ(one: Sequence[Grid], other: Sequence[Grid]) -> bool:
    """Say whether two renderings of the same arms show different numbers anywhere."""

    def cells(grids: Sequence[Grid]) -> list[Cell | None]:
        return [shown.cell for grid in grids for row in grid.rows for shown in row.cells]

    # Compared as text, in which a missing number equals a missing number.
    return [str(cell) for cell in cells(one)] != [str(cell) for cell in cells(other)]


def dataset_grids(table: CohortMetrics, detectors: Sequence[str]) -> list[Grid]:
    """One arm by dataset; nothing where there is one, which the table of arms shows."""
    names = table.values("dataset")
    if len(names) < 3:
        return []
    return _one_arm(
        table,
        detectors,
        "By dataset",
        {"all datasets" if name == "all" else name: {"dataset": name} for name in names},
        "Tuned settings, members with at least one copy.",
    )


def copies_grids(table: CohortMetrics, detectors: Sequence[str]) -> list[Grid]:
    """One arm by realised copies."""
    found: dict[tuple[Cell | None, ...], str] = {}
    for label in sorted(table.values("copies"), key=copies_order):
        # Where all members have eight copies, `all`, `8` and `4+` are one and the same.
        cells = tuple(reported_cell(table, name, copies=label) for name in detectors)
        found.setdefault(cells, label)
    labels = found.values()
    return _one_arm(
        table,
        detectors,
        "By realised copies",
        {_copies_head(label): {"copies": label} for label in labels},
        "Tuned settings, all datasets pooled. Numbers of copies with too few members are left "
        "out; 0 copies: members that drew none.",
    )


def variants_grids(tables: Sequence[CohortMetrics], detectors: Sequence[str]) -> list[Grid]:
    """Every arm whose members' copies differ in what they carry; none where none does."""
    lines = []
    for table in tables:
        for variant in table.values("variant"):
            if variant == "all":
                continue
            cells = [
                table.get(name, selection="tuned", variant=variant)
                or table.get(name, variant=variant)
                for name in detectors
            ]
            arm = table.cohort.label()
            lines.append(table_line(variant, arm, detectors, cells))
    return tables_by_detector(
        "By variant of the copies",
        detectors,
        lines,
        "AUC with its interval; tuned settings, all datasets pooled. Detectors are always "
        "given the whole example, whatever its copies carried. The members of one variant are "
        f"compared with all non-members. {_COUNTS_NOTE}",
    )


def retrained_grids(tables: Sequence[CohortMetrics], detectors: Sequence[str]) -> list[Grid]:
    """Every model that was trained again without a forget set; none where there is none."""
    lines = []
    for table in tables:
        if table.cohort.model != "retrained":
            continue
        for copies, name in (("0", "forgotten"), ("all", "kept")):
            cells = [reported_cell(table, detector, copies=copies) for detector in detectors]
            if any(cell is not None for cell in cells):
                lines.append(table_line(name, table.cohort.label(), detectors, cells))
    return tables_by_detector(
        "Trained again without the forget set",
        detectors,
        lines,
        "AUC with its interval; tuned settings, all datasets pooled. Forgotten: members of the "
        "arm that this model never saw; their AUC is what a perfect removal leaves. Kept: members "
        "with their copies. Both are compared with the same non-members. "
        f"{_COUNTS_NOTE}",
    )


def rates_grids(best: Headline, detectors: Sequence[str]) -> list[Grid]:
    """True-positive rates of the headline's arm; unsupported ones show as such."""
    table = best.table

    def rate(detector: str, metric: str) -> Cell | None:
        tuned = table.get(detector, selection="tuned", metric=metric)
        return tuned or table.get(detector, metric=metric)

    def percent(metric: str) -> str:
        return f"{float(metric.removeprefix('tpr@')) * 100:g} %"

    all_metrics = [name for name in table.values("metric") if name.startswith("tpr@")]
    unsupported = [
        metric
        for metric in all_metrics
        if not any((cell := rate(name, metric)) and cell.available for name in detectors)
    ]
    metrics = [metric for metric in all_metrics if metric not in unsupported]
    rows = []
    for detector in detectors if metrics else ():
        cells = [rate(detector, metric) for metric in metrics]
        counts = [f"{cell.n_members:,} + {cell.n_nonmembers:,}" if cell else "" for cell in cells]
        if any(counts):
            note = next(filter(None, counts))
            # A rate is supported by fewer seeds than another where their non-members differ.
            rows.append(
                GridRow(
                    Head(detector, note),
                    [
                        ShownCell(cell, n=n if cell and cell.available and n != note else "")
                        for cell, n in zip(cells, counts, strict=True)
                    ],
                )
            )
    where = table.cohort.label()
    lacking = (
        f" n is too small for {', '.join(map(percent, unsupported))} FPR." if unsupported else ""
    )
    measured = counts_note = ""
    if metrics:
        measured = (
            "Tuned settings, members with at least one copy; one threshold for each dataset. "
        )
        counts_note = " Under each detector: members + non-members."
    return split_table(
        Grid(
            title="True-positive rate at a fixed false-positive rate"
            + (f" ({where})" if where else ""),
            corner="Detector",
            columns=[Head(f"{percent(name)} FPR") for name in metrics],
            rows=rows,
            caption=f"{measured}A rate t needs at least 10 / t non-members.{lacking}{counts_note}",
        )
    )


def difference_rows(
    analysis: Analysis, best: Headline, detectors: Sequence[str]
) -> list[DifferenceRow]:
    """Paired differences in the headline's arm, pooled, of the headline's kind of settings."""
    cohort = best.table.cohort
    wanted = {axis_column(key): value for key, value in cohort.axes}
    wanted |= {"model": cohort.model, "dataset": "all", "copies": "all"}
    wanted |= {"selection": best.selection, "metric": AUC}
    found: dict[tuple[str, str], Cell] = {}
    settings: dict[str, str] = {}
    for row in analysis.differences.to_pylist():
        if all(row[key] == value for key, value in wanted.items()):
            names = ("setting", "value", "low", "high", "n_members", "n_nonmembers", "n_seeds")
            found[row["detector"], row["reference"]] = Cell(**{n: row[n] for n in names})
            settings[row["detector"]] = row["setting"]
    return [
        DifferenceRow(name, settings[name], found.get((name, "best")), found.get((name, "loss")))
        for name in detectors
        if name in settings
    ]


def _one_arm(
    table: CohortMetrics,
    detectors: Sequence[str],
    title: str,
    parts: Mapping[str, Mapping[str, str]],
    caption: str,
) -> list[Grid]:
    """Return one arm's tuned AUCs; a line's head, and which part of the rows it is of."""
    lines = [
        table_line(head, "", detectors, [reported_cell(table, name, **part) for name in detectors])
        for head, part in parts.items()
    ]
    where = table.cohort.label()
    return tables_by_detector(
        title + (f" ({where})" if where else ""),
        detectors,
        lines,
        f"AUC with its interval. {caption} {_COUNTS_NOTE}",
    )


def _selected(table: CohortMetrics, detector: str, selection: str) -> Cell | None:
    found = table.get(detector, selection=selection)
    return found or table.get(detector)


def _copies_head(label: str) -> str:
    if label == "all":
        return "1 or more copies"
    if label.endswith("+"):
        return f"{label[:-1]} or more copies"
    return "1 copy" if label == "1" else f"{label} copies"
