"""At low false-positive rates: who is found, what can be flagged, and data sets as wholes."""

import csv
from collections.abc import Mapping, Sequence
from math import log10

from analysis.metrics_table import Cell
from analysis.page.drawing.elements import Dot
from analysis.page.drawing.panels import Line, LinePanel, Panels, draw_panels
from analysis.page.grids import interval
from analysis.page.parts import Columns, Fold, Note, Part, Picture, fold_rest, present
from analysis.page.sections.decisions import dataset_findings, flagged_parts
from analysis.page.table import Column, Entry, Table
from analysis.page.view import LOSS, View, capital, short_counts
from analysis.selection.ranking import reported_cell
from analysis.summary import auc_text

_OPEN_ROWS = 8
_TICKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def rates_parts(view: View, figure: Picture | None = None) -> list[Part]:
    """Return the section: the sentence, ROC curves and the table; what is decided is folded.

    Args:
        view: of the run.
        figure: the run's own drawing of the curves.
    """
    metrics = {
        float(name.removeprefix("tpr@")): name
        for name in sorted(view.best.table.values("metric"))
        if name.startswith("tpr@")
    }
    cells = {
        rate: {
            name: reported_cell(view.best.table, name, metric=metric) for name in view.models_only
        }
        for rate, metric in sorted(metrics.items())
    }
    measured = {
        rate: found
        for rate, found in cells.items()
        if any(cell and cell.available for cell in found.values())
    }
    lacking = [rate for rate in cells if rate not in measured]
    table, rest = _tables(view, measured, lacking)
    cohort, analysis = view.best.table.cohort, view.inputs.analysis
    decided = flagged_parts(analysis.flagged, cohort, view.models_only, view.names)
    whole = dataset_findings(analysis.datasets, cohort)
    # Too few non-members for a table leave curves that nobody should read a rate from.
    curves = Fold("ROC curves", [figure]) if figure and not measured else None
    return present(
        Note(_sentence(view, measured, lacking), "say") if cells else None,
        Columns(present(_picture(view, min(measured)), table), "answer") if measured else curves,
        rest,
        Fold("Decisions with a bound on their errors", decided) if decided else None,
        Fold("The data set as a whole", whole) if whole else None,
    )


def _percent(rate: float) -> str:
    return f"{rate * 100:g} %"


def _sentence(
    view: View, measured: Mapping[float, Mapping[str, Cell | None]], lacking: Sequence[float]
) -> str:
    shares = [
        (_percent(rate), f"{100 * cell.value:.0f} % [{100 * cell.low:.0f}, {100 * cell.high:.0f}]")
        for rate, cells in measured.items()
        if (cell := cells.get(view.best.detector)) and cell.available
    ][:2]
    found = [
        f"with {rate}, {share}"
        if at
        else f"with {rate} false alarms {view.name} finds {share} of the members"
        for at, (rate, share) in enumerate(shares)
    ]
    others = view.best.cell.n_nonmembers
    said = [", ".join(found)] if found else []
    if lacking:
        *rates, last = map(_percent, lacking)
        named = f"{', '.join(rates)} or {last}" if rates else last
        said.append(f"{others:,} non-members are too few to say anything about {named}")
    return f"{capital('; '.join(said))}." if said else ""


def _tables(
    view: View, measured: Mapping[float, Mapping[str, Cell | None]], lacking: Sequence[float]
) -> tuple[Table | None, Fold | None]:
    if not measured:
        return None, None
    names = [
        name for name in view.models_only if any(cells.get(name) for cells in measured.values())
    ]
    rows = {
        name: (
            Entry(view.title(name), kind=view.kind(name)),
            *(interval(cells[name], lacking="n too small")
              for cells in measured.values()),
        )
        for name in names
    }  # fmt: skip
    shown = names[:_OPEN_ROWS]
    if LOSS in names and LOSS not in shown:
        shown = [*shown[:-1], LOSS]
    needs = ", ".join(f"{_percent(rate)} would need {10 / rate:,.0f}" for rate in lacking)
    where = f"{capital(view.arm)}. " if view.arm else ""
    caption = f"{where}{short_counts(view.best.cell)}; one threshold for each dataset."
    caption += f" Non-members: {needs}." if needs else ""
    table = Table(
        title="Share of members found",
        columns=(
            Column("Detector"),
            *(Column(f"at {_percent(rate)} false alarms", right=True) for rate in measured),
        ),
        rows=tuple(rows[name] for name in shown),
        caption=caption,
        style="detectors",
    )
    rest = [rows[name] for name in names if name not in shown]
    return table, fold_rest(table, rest, "detectors")


def _picture(view: View, floor: float) -> Picture | None:
    """Return the ROC curves of the run's figure: the chosen detector, loss, the others faint."""
    files = [path for one in view.inputs.figures if one.name == "roc" for path in one.files]
    path = next((path for path in files if path.suffix == ".csv"), None)
    if path is None:
        return None
    curves: dict[str, list[tuple[float, float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            point = float(row["false_positive_rate"]), float(row["true_positive_rate"])
            curves.setdefault(row["detector"], []).append(point)
    order = [name for name in view.shown if name in curves and not view.kind(name)]
    order += [name for name in (LOSS, view.best.detector) if name in curves]
    lines = [
        Line(_steps(curves[name], floor), view.kind(name) or "faint", marks=False)
        for name in dict.fromkeys(order)
    ]
    if not lines:
        return None
    ticks = [rate for rate in _TICKS if rate >= floor]
    panels = Panels(
        panels=[LinePanel("", lines)],
        x=[(log10(rate), _percent(rate)) for rate in ticks],
        y=[(at / 4, f"{25 * at} %") for at in range(5)],
        centre=0.0,
        x_label="non-members flagged (false alarms)",
        label=f"ROC curves of {len(lines)} detectors from {_percent(floor)} false alarms on; "
        f"{view.name} has {auc_text(view.best.cell)}",
        height=300.0,
    )
    caption = f"Members found. Orange: {view.name}; dashed: Loss; grey: the others. "
    caption += f"{short_counts(view.best.cell)}; from {_percent(floor)} on, the lowest rate that "
    caption += "so many non-members support."
    return view.picture("roc", "ROC curves", caption, draw_panels(panels, 560))


def _steps(points: Sequence[tuple[float, float]], floor: float) -> list[tuple[float, Dot]]:
    """Return a curve of steps from the lowest rate on, on a logarithmic scale."""
    start = max((y for x, y in points if x <= floor), default=0.0)
    kept = [(floor, start)]
    for x, y in sorted(points):
        if x > floor:
            kept += [(x, kept[-1][1])] if x > kept[-1][0] else []
            kept.append((x, max(y, kept[-1][1])))
    nothing = float("nan")
    return [(log10(x), Dot(y, nothing, nothing, "")) for x, y in kept]
