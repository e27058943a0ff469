"""Tables of the page as plain rows of cells, ready for the template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analysis.arm import MODEL_FREE, axis_column
from analysis.copies import copies_order
from analysis.lookup import Cell, MetricsOf
from analysis.results import Analysis
from analysis.summary import Headline


class GridRow(NamedTuple):
    """A row: its head, a note under it, one cell a column (None: nothing there)."""

    head: str
    note: str
    cells: list[Cell | None]
    best: int | None
    """Index of the highest AUC above chance of a detector that looks at the model."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of intervals."""

    title: str
    corner: str
    columns: list[str]
    rows: list[GridRow]
    caption: str


class DifferenceRow(NamedTuple):
    """One detector's paired AUC differences."""

    detector: str
    setting: str
    to_best: Cell | None
    to_loss: Cell | None


def detector_order(best: MetricsOf, tables: Sequence[MetricsOf]) -> list[str]:
    """Return all detectors, by falling tuned AUC in the headline's arm, controls last."""
    names = dict.fromkeys(name for table in tables for name in table.values("detector"))

    def height(name: str) -> tuple[bool, float]:
        cell = pick(best, name, "tuned")
        return (name in MODEL_FREE, -cell.value if cell is not None and cell.available else 9.0)

    return sorted(names, key=height)


def pick(
    table: MetricsOf, detector: str, selection: str, dataset: str = "all", copies: str = "all"
) -> Cell | None:
    """Return an AUC cell; the default one where nothing was tuned."""
    found = table.get(detector, dataset=dataset, selection=selection, copies=copies)
    return found or table.get(detector, dataset=dataset, copies=copies)


def arms_grid(tables: Sequence[MetricsOf], detectors: Sequence[str], selection: str) -> Grid:
    """All arms, all datasets pooled: one row a cohort, one column a detector."""
    rows = []
    for table in sorted(tables, key=lambda table: table.cohort.model != "contaminated"):
        cells = [pick(table, name, selection) for name in detectors]
        head = table.cohort.label() or table.cohort.model
        model = "" if table.cohort.model == "contaminated" else f"{table.cohort.model} model"
        note = " · ".join(part for part in (model, _behind(cells)) if part)
        row = _row(head, note, detectors, cells)
        rows.append(row._replace(best=None) if model else row)
    return Grid(
        title=f"Detectors and arms, {selection} settings",
        corner="Arm",
        columns=list(detectors),
        rows=rows,
        caption="AUC with its interval; all datasets pooled (mean of the datasets' AUCs, "
        "weighted by members), members with at least one copy. Bold: the row's "
        "highest, where its interval lies above 0.5.",
    )


def dataset_grid(table: MetricsOf, detectors: Sequence[str]) -> Grid:
    """One arm by dataset."""
    return _one_arm(
        table,
        detectors,
        "By dataset",
        "Dataset",
        {name: {"dataset": name} for name in table.values("dataset")},
        "Tuned settings, members with at least one copy.",
    )


def copies_grid(table: MetricsOf, detectors: Sequence[str]) -> Grid:
    """One arm by realised copies."""
    labels = sorted(table.values("copies"), key=copies_order)
    return _one_arm(
        table,
        detectors,
        "By realised copies",
        "Copies",
        {label: {"copies": label} for label in labels},
        "Tuned settings, all datasets pooled. Numbers of copies with too few members are left "
        "out; 0 are members that drew no copy.",
    )


def variants_grid(tables: Sequence[MetricsOf], detectors: Sequence[str]) -> Grid | None:
    """Every arm whose members' copies differ in what they carry; None where none does."""
    rows = []
    for table in tables:
        for variant in table.values("variant"):
            if variant == "all":
                continue
            cells = [
                table.get(name, selection="tuned", variant=variant)
                or table.get(name, variant=variant)
                for name in detectors
            ]
            head = f"{variant} · {table.cohort.label()}" if table.cohort.label() else variant
            rows.append(_row(head, _behind(cells), detectors, cells))
    return _grid_of(
        rows,
        detectors,
        "By variant of the copies",
        "Copies carry",
        "AUC with its interval; tuned settings, all datasets pooled. Detectors are always "
        "asked about the whole example, whatever its copies carried; members of one variant "
        "against all non-members.",
    )


def retrained_grid(tables: Sequence[MetricsOf], detectors: Sequence[str]) -> Grid | None:
    """Every model that was trained again without a forget set; None where there is none."""
    rows = []
    for table in tables:
        if table.cohort.model != "retrained":
            continue
        arm = table.cohort.label()
        for copies, name in (("0", "forgotten"), ("all", "kept")):
            cells = [pick(table, detector, "tuned", copies=copies) for detector in detectors]
            if any(cell is not None for cell in cells):
                head = f"{name} · {arm}" if arm else name
                rows.append(_row(head, _behind(cells), detectors, cells))
    return _grid_of(
        rows,
        detectors,
        "Trained again without the forget set",
        "Members",
        "AUC with its interval; tuned settings, all datasets pooled. The forgotten are "
        "members of the arm that this model never saw: what a perfect removal leaves. The kept "
        "have their copies. Both against the same non-members.",
    )


def rates_grid(best: Headline, detectors: Sequence[str]) -> Grid:
    """True-positive rates of the headline's arm; unsupported ones show as such."""
    metrics = [name for name in best.table.values("metric") if name.startswith("tpr@")]
    rows = []
    for detector in detectors:
        cells = [
            best.table.get(detector, selection="tuned", copies="all", metric=metric)
            or best.table.get(detector, copies="all", metric=metric)
            for metric in metrics
        ]
        rows.append(GridRow(detector, "", cells, None))
    percent = [f"{float(name.removeprefix('tpr@')) * 100:g} % FPR" for name in metrics]
    return Grid(
        title="True-positive rate at a fixed false-positive rate",
        corner="Detector",
        columns=percent,
        rows=rows,
        caption="Tuned settings; one threshold for each dataset. A rate t needs at least 10 / t "
        "non-members, otherwise n is too small.",
    )


def difference_rows(
    analysis: Analysis, best: Headline, detectors: Sequence[str]
) -> list[DifferenceRow]:
    """Paired differences in the headline's arm, pooled, tuned settings."""
    cohort = best.table.cohort
    wanted = {axis_column(key): value for key, value in cohort.axes}
    wanted |= {"model": cohort.model, "dataset": "all", "copies": best.copies}
    wanted |= {"selection": best.selection}
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
    table: MetricsOf,
    detectors: Sequence[str],
    title: str,
    corner: str,
    lines: Mapping[str, Mapping[str, str]],
    caption: str,
) -> Grid:
    """Return a grid of one arm's tuned AUCs; a line's head, and which part of the rows it is of."""
    rows = []
    for head, part in lines.items():
        cells = [pick(table, detector, "tuned", **part) for detector in detectors]
        rows.append(_row(head, _behind(cells), detectors, cells))
    where = table.cohort.label()
    return Grid(
        title=title + (f" ({where})" if where else ""),
        corner=corner,
        columns=list(detectors),
        rows=rows,
        caption=f"AUC with its interval. {caption}",
    )


def _grid_of(
    rows: list[GridRow], detectors: Sequence[str], title: str, corner: str, caption: str
) -> Grid | None:
    """Return the rows as a grid with a column a detector; None where there are none."""
    if not rows:
        return None
    return Grid(title=title, corner=corner, columns=list(detectors), rows=rows, caption=caption)


def _row(head: str, note: str, names: Sequence[str], cells: list[Cell | None]) -> GridRow:
    values = [
        (cell.value, at)
        for at, (name, cell) in enumerate(zip(names, cells, strict=True))
        if name not in MODEL_FREE and cell is not None and cell.available and cell.low > 0.5
    ]
    return GridRow(head, note, cells, max(values)[1] if values else None)


def _behind(cells: Sequence[Cell | None]) -> str:
    there = [cell for cell in cells if cell is not None]
    if not there:
        return ""
    most = max(there, key=lambda cell: cell.n_members)
    seeds = "1 seed" if most.n_seeds == 1 else f"{most.n_seeds} seeds"
    return f"{most.n_members:,} + {most.n_nonmembers:,}, {seeds}"
