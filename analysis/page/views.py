"""Tables of the page as plain rows of cells, ready for the template."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analysis.arm import MODEL_FREE, axis_column
from analysis.copy_bins import copies_order
from analysis.metrics_table import Cell, CohortMetrics
from analysis.page.grid import Grid, GridRow, Head, Shown, blocks, by_detector, line, unmarked
from analysis.results import Analysis
from analysis.selection.ranking import reported_cell
from analysis.summary import Headline

_COUNTED = "Under each head: members + non-members, seeds; a number of other rows says so itself."


class DifferenceRow(NamedTuple):
    """One detector's paired AUC differences."""

    detector: str
    setting: str
    to_best: Cell | None
    to_loss: Cell | None


def detector_order(best: CohortMetrics, tables: Sequence[CohortMetrics]) -> list[str]:
    """Return all detectors, by falling tuned AUC in the headline's arm, controls last."""
    names = dict.fromkeys(name for table in tables for name in table.values("detector"))

    def height(name: str) -> tuple[bool, float]:
        cell = reported_cell(best, name)
        return (name in MODEL_FREE, -cell.value if cell is not None and cell.available else 9.0)

    return sorted(names, key=height)


def arms_grids(
    tables: Sequence[CohortMetrics], detectors: Sequence[str], selection: str
) -> list[Grid]:
    """All arms, all datasets pooled: one column an arm, one row a detector."""
    lines = []
    for table in sorted(tables, key=lambda table: table.cohort.model != "contaminated"):
        cells = [_selected(table, name, selection) for name in detectors]
        model = "" if table.cohort.model == "contaminated" else f"{table.cohort.model} model"
        arm = table.cohort.label()
        row = line(arm or model or "all members", model if arm else "", detectors, cells)
        lines.append(unmarked(row) if model else row)
    return by_detector(
        f"Detectors and arms, {selection} settings",
        detectors,
        lines,
        "AUC with its interval; all datasets pooled (mean of the datasets' AUCs, "
        "weighted by members), members with at least one copy. Bold: an arm's best, the highest "
        f"lower end on the rows that most detectors share, where it lies above 0.5. {_COUNTED}",
    )


def differ(one: Sequence[Grid], other: Sequence[Grid]) -> bool:
    """Say whether two renderings of the same arms show different numbers anywhere."""

    def cells(grids: Sequence[Grid]) -> list[Cell | None]:
        return [place.cell for grid in grids for row in grid.rows for place in row.places]

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
        "out; 0 are members that drew no copy.",
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
            lines.append(line(variant, arm, detectors, cells))
    return by_detector(
        "By variant of the copies",
        detectors,
        lines,
        "AUC with its interval; tuned settings, all datasets pooled. Detectors are always "
        "asked about the whole example, whatever its copies carried; members of one variant "
        f"against all non-members. {_COUNTED}",
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
                lines.append(line(name, table.cohort.label(), detectors, cells))
    return by_detector(
        "Trained again without the forget set",
        detectors,
        lines,
        "AUC with its interval; tuned settings, all datasets pooled. The forgotten are "
        "members of the arm that this model never saw: what a perfect removal leaves. The kept "
        f"have their copies. Both against the same non-members. {_COUNTED}",
    )


def rates_grids(best: Headline, detectors: Sequence[str]) -> list[Grid]:
    """True-positive rates of the headline's arm; unsupported ones show as such."""
    table = best.table

    def rate(detector: str, metric: str) -> Cell | None:
        tuned = table.get(detector, selection="tuned", metric=metric)
        return tuned or table.get(detector, metric=metric)

    def percent(metric: str) -> str:
        return f"{float(metric.removeprefix('tpr@')) * 100:g} %"

    every = [name for name in table.values("metric") if name.startswith("tpr@")]
    held = [
        metric
        for metric in every
        if not any((cell := rate(name, metric)) and cell.available for name in detectors)
    ]
    metrics = [metric for metric in every if metric not in held]
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
                        Shown(cell, n=n if cell and cell.available and n != note else "")
                        for cell, n in zip(cells, counts, strict=True)
                    ],
                )
            )
    where = table.cohort.label()
    lacking = f" n is too small for {', '.join(map(percent, held))} FPR." if held else ""
    return blocks(
        Grid(
            title="True-positive rate at a fixed false-positive rate"
            + (f" ({where})" if where else ""),
            corner="Detector",
            columns=[Head(f"{percent(name)} FPR") for name in metrics],
            rows=rows,
            caption="Tuned settings, members with at least one copy; one threshold for each "
            f"dataset. A rate t needs at least 10 / t non-members.{lacking} Under each detector: "
            "members + non-members.",
        )
    )


def difference_rows(
    analysis: Analysis, best: Headline, detectors: Sequence[str]
) -> list[DifferenceRow]:
    """Paired differences in the headline's arm, pooled, of the headline's kind of settings."""
    cohort = best.table.cohort
    wanted = {axis_column(key): value for key, value in cohort.axes}
    wanted |= {"model": cohort.model, "dataset": "all", "copies": "all"}
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
    table: CohortMetrics,
    detectors: Sequence[str],
    title: str,
    parts: Mapping[str, Mapping[str, str]],
    caption: str,
) -> list[Grid]:
    """Return one arm's tuned AUCs; a line's head, and which part of the rows it is of."""
    lines = [
        line(head, "", detectors, [reported_cell(table, name, **part) for name in detectors])
        for head, part in parts.items()
    ]
    where = table.cohort.label()
    return by_detector(
        title + (f" ({where})" if where else ""),
        detectors,
        lines,
        f"AUC with its interval. {caption} {_COUNTED}",
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
