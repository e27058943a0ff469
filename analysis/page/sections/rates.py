"""At low false-positive rates: who is found, what can be flagged, and data sets as wholes."""

from collections.abc import Mapping, Sequence
from math import log10, nan

import numpy as np

from analysis.intervals.estimate import Estimate
from analysis.metrics import Floats
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Columns, Fold, Note, Part, fold_rest, present
from analysis.page.sections.decisions import dataset_findings, flagged_parts
from analysis.page.table import Column, Table
from analysis.page.view import LOSS, View, capital, short_counts
from analysis.summary import auc_text
from analysis.unit import AUC, Dot, Entry

_OPEN_ROWS = 8
_MAX_CURVES = 9
_TICKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def rates_parts(view: View) -> list[Part]:
    """Return the section: the sentence, ROC curves and the table; what is decided is folded."""
    metrics = {
        float(name.removeprefix("tpr@")): name
        for name in sorted(view.best.table.values("metric"))
        if name.startswith("tpr@")
    }
    cells = {
        rate: {name: view.best.table.reported(name, metric=metric) for name in view.models_only}
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
    curves = _picture(view, min(measured, default=0.0))
    folded = Fold("ROC curves", [curves]) if curves else None
    return present(
        Note(_sentence(view, measured, lacking), "say") if cells else None,
        Columns(present(curves, table), "answer") if measured else folded,
        rest,
        Fold("Decisions with a bound on their errors", decided) if decided else None,
        Fold("The data set as a whole", whole) if whole else None,
    )


def _percent(rate: float) -> str:
    return f"{rate * 100:g} %"


def _sentence(
    view: View, measured: Mapping[float, Mapping[str, Estimate | None]], lacking: Sequence[float]
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
    others = view.best.cell.nonmembers
    said = [", ".join(found)] if found else []
    if lacking:
        *rates, last = map(_percent, lacking)
        named = f"{', '.join(rates)} or {last}" if rates else last
        said.append(f"{others:,} non-members are too few to say anything about {named}")
    return f"{capital('; '.join(said))}." if said else ""


def _tables(
    view: View, measured: Mapping[float, Mapping[str, Estimate | None]], lacking: Sequence[float]
) -> tuple[Table | None, Fold | None]:
    if not measured:
        return None, None
    names = [
        name for name in view.models_only if any(cells.get(name) for cells in measured.values())
    ]
    rows = {
        name: (
            Entry(view.title(name), kind=view.kind(name)),
            *(AUC.entry(cells[name], lacking="n too small")
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
    """Return the ROC curves: the chosen detector, loss, the others faint.

    Each point is a threshold within each dataset; members have at least one copy.

    Args:
        view: of the run.
        floor: the lowest rate, from which on the axis goes by logarithms; 0 for linear axes.
    """
    curves = _curves(view)
    if not curves:
        return None
    lines = [
        Line(_steps(exceeded, floor), view.kind(name) or "faint", marks=False)
        for name, exceeded in reversed(curves.items())
    ]
    ticks = [rate for rate in _TICKS if rate >= floor] if floor else [at / 4 for at in range(5)]
    panels = Panels(
        panels=[LinePanel("", lines)],
        x=[(log10(rate) if floor else rate, _percent(rate)) for rate in ticks],
        y=[(at / 4, f"{25 * at} %") for at in range(5)],
        centre=0.0,
        x_label="non-members flagged (false alarms)",
        label=f"ROC curves of {len(lines)} detectors from {_percent(floor)} false alarms on; "
        f"{view.name} has {auc_text(view.best.cell)}",
        height=300.0,
    )
    caption = f"Members found. Orange: {view.name}; dashed: Loss; grey: the others. "
    caption += short_counts(view.best.cell)
    if floor:
        caption += f"; from {_percent(floor)} on, the lowest rate that so many non-members support."
    rows = [
        {"detector": name, "false_positive_rate": x, "true_positive_rate": y}
        for name, exceeded in curves.items()
        for x, y in _points(exceeded)
    ]
    return picture("roc", "ROC curves", caption, panels, 560, rows)


def _curves(view: View) -> dict[str, Floats]:
    """Return of each detector, per member, the share of its dataset's non-members above it."""
    names = [view.best.detector, *(name for name in view.shown if not view.kind(name))]
    shown = names[: _MAX_CURVES - 1]
    shown[1:1] = [LOSS] if LOSS in view.shown and view.best.detector != LOSS else []
    rows = {
        name: view.data.rows(name, view.best.selection, view.inputs.analysis_settings)
        for name in shown
    }
    spiked = {name: each.exceeded[each.copies > 0] for name, each in rows.items()}
    return {name: np.sort(exceeded) for name, exceeded in spiked.items() if len(exceeded)}


def _points(exceeded: Floats) -> list[tuple[float, float]]:
    """Return false-positive rates from 0 to 1, with the true-positive rate at each."""
    grid = np.unique(np.concatenate([[0.0, 1.0], exceeded]))
    shares = np.searchsorted(exceeded, grid, side="right") / len(exceeded)
    return [(0.0, 0.0), *zip(grid.tolist(), shares.tolist(), strict=True)]


def _steps(exceeded: Floats, floor: float) -> list[tuple[float, Dot]]:
    """Return a curve of steps from the lowest rate on."""
    points = _points(exceeded)
    kept = [(floor, max(y for x, y in points if x <= floor))]
    for x, y in points:
        if x > floor:
            kept += [(x, kept[-1][1]), (x, y)]
    return [(log10(x) if floor else x, Dot(y, nan, nan, "")) for x, y in kept]
