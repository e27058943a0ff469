"""Which detector: the paired differences as a picture, and every detector of the headline's arm.

Settings are chosen on `tune`, numbers are of `test`. Nobody leaves the table in silence: controls,
upper bounds and detectors without an interval or on rows of their own stand in it with the reason,
and those that could not run are listed with what to set.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from analysis.arm import MODEL_FREE, UPPER_BOUNDS
from analysis.compared_rows import UnscoredRows
from analysis.findings import Findings
from analysis.findings import Row as Found
from analysis.intervals.estimate import Estimate
from analysis.page.contrasts import BEST, differences_of
from analysis.page.crossed import Head, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Columns, Fold, Note, Part, fold_items, fold_rest, present
from analysis.page.sections.unscored import unscored_parts
from analysis.page.table import Column, Row, Table, listing, numbers, texts
from analysis.page.view import (
    LOSS,
    View,
    capital,
    setting_words,
    short_counts,
)
from analysis.selection.ranking import common_rows, tune_auc
from analysis.summary import auc_text
from analysis.unit import AUC, NOTHING, POINTS, Entry, counts
from detect.detector_table import DetectorFacts
from detect.scoring import LeftOut

_UNDECLARED = "not declared"
_OPEN_ROWS = 12
"""Rows before the fold of a longer table."""


def detector_parts(view: View, notes: Sequence[str]) -> list[Part]:
    """Return the sentence, the picture, the table, and what is folded behind them.

    Args:
        view: of the run.
        notes: what detectors note on their scores.
    """
    gaps = differences_of(view)
    shown, rest = _tables(view, gaps)
    left_out = left_out_listing(view.inputs.left_out)
    unscored = unscored_parts(view.inputs.analysis.unscored)
    return present(
        Note(_sentence(view, gaps), "say"),
        Columns(present(_picture(view, gaps), shown), "answer"),
        [part for part in unscored if isinstance(part, Note)],
        rest,
        Fold(f"Detectors that are not in this run: {len(left_out.rows)}", [left_out])
        if left_out
        else None,
        [part for part in unscored if not isinstance(part, Note)],
        fold_items("Notes of detectors", notes),
    )


def _sentence(view: View, gaps: Findings) -> str:
    """Say who was chosen, who cannot be told from it, and what it has over loss."""
    best = view.best
    start = f"{view.name}, with {auc_text(best.cell)}"
    every = map(Estimate.of, gaps.where(reference=BEST).rows)
    known = [gap for gap in every if gap.available]
    alike = sum(gap.contains(0) for gap in known)
    others = f"{alike} of {len(known)} others cannot be told from it"
    if not known:
        return f"{start}; nothing else was compared with it."
    ahead = sum(gap.low > 0 for gap in known)
    if ahead:
        others += f", {ahead} {'is' if ahead == 1 else 'are'} ahead of it on the test split"
    over = gaps.get(detector=best.detector, reference=LOSS)
    if over is None or not over.available:
        return f"{start}; {others}."
    lead = POINTS.text(over.value, over.low, over.high)
    verdict = "may be none" if over.contains(0) else "is real" if over.low > 0 else "is a loss"
    return f"{start}; {others}, and its lead over plain Loss, {lead}, {verdict}."


def _picture(view: View, gaps: Findings) -> Picture | None:
    """Return the paired differences to the chosen detector and to loss."""
    compared = {*gaps.values("detector"), view.best.detector}
    names = [name for name in view.shown if name in compared]
    references = [
        (key, reference, Head(f"less {view.title(reference)}", note=note, name=reference))
        for key, reference, note in (
            (BEST, view.best.detector, "all at once"),
            (LOSS, LOSS, "each for itself"),
        )
        if key in gaps.values("reference") and (key == BEST or view.best.detector != LOSS)
    ]
    crossed = cross(
        ((name, *reference) for reference in references for name in names),
        lambda item: view.head(item[0]),
        lambda item: item[3],
        unit=POINTS,
        cell=lambda item: (
            "itself" if item[0] == item[2] else gaps.row(detector=item[0], reference=item[1])
        ),
    )
    matrix = crossed.matrix()
    if matrix is None or len(names) < 2:
        return None
    where = f", {view.arm}" if view.arm else ""
    caption = f"In points (hundredths of AUC), on the same texts, 95 % intervals{where}; "
    caption += f"{short_counts(view.best.cell)}. Those to {view.name} hold for all at once."
    records = crossed.records("detector", "reference")
    return picture("differences", "Paired differences", caption, matrix, 560, records)


def _tables(view: View, gaps: Findings) -> tuple[Table, Fold | None]:
    """Return the table down to loss, and the rest of it, folded."""
    order = view.order
    measured = {name: _metrics_of(name, view).reported_row(name) for name in order}
    facts = {one.name: one for one in view.inputs.detectors}
    rows = {name: _row(view, name, measured, facts.get(name), gaps) for name in order}
    end = order.index(LOSS) + 1 if LOSS in order else len(order)
    end = max(order.index(view.best.detector) + 1, min(max(end, 2), _OPEN_ROWS))
    where = f"{capital(view.arm)}. " if view.arm else ""
    table = Table(
        title=f"The {end} first" if end < len(order) else "Every detector",
        columns=(
            Column("Detector"),
            *numbers("AUC, tune split", "AUC, test split", "Points over Loss"),
            *texts("What it needs"),
        ),
        rows=tuple(rows[name] for name in order[:end]),
        caption=f"{where}All datasets pooled, members with a copy; {short_counts(view.best.cell)}. "
        "The tune split chose settings and detector, so its AUCs are optimistic. Bold over Loss: "
        "the interval leaves out 0.",
        style="detectors",
    )
    return table, fold_rest(table, [rows[name] for name in order[end:]], "detectors and controls")


def _row(
    view: View,
    name: str,
    measured: Mapping[str, Found | None],
    facts: DetectorFacts | None,
    gaps: Findings,
) -> Row:
    table, row = view.best.table, measured[name]
    setting = tuple(filter(None, [setting_words(row["setting"])])) if row is not None else ()
    remarks = _remarks(name, facts, measured, table, view.inputs.analysis.unscored)
    first = view.bold.get(table.cohort) == name
    tune = tune_auc(_metrics_of(name, view), name)
    return (
        Entry(view.title(name), notes=(*setting, *remarks), kind=view.kind(name)),
        Entry(f"{tune:.2f}" if isfinite(tune) else NOTHING, kind="interval", strong=first),
        AUC.entry(row, best=first),
        POINTS.entry(gaps.row(detector=name, reference=LOSS)),
        (facts.access if facts else _UNDECLARED),
    )


def left_out_listing(left_out: Sequence[LeftOut]) -> Table | None:
    """Return the detectors that could not run, with what to do; None if all ran."""
    return listing(
        "Detectors that are not in this run",
        ("Detector", "Lacks", "What to do"),
        [(one.detector, " and ".join(one.lacks), one.hint) for one in left_out],
        "The experiment asks for all detectors; the needs of these are not met.",
    )


def _metrics_of(name: str, view: View) -> Findings:
    """Return the metrics that a detector is in; a control is the same beside whichever model."""
    tables = [view.best.table, *(view.tables if name in MODEL_FREE else ())]
    return next((one for one in tables if one.reported_row(name)), tables[0])


def _remarks(
    name: str,
    facts: DetectorFacts | None,
    measured: Mapping[str, Found | None],
    table: Findings,
    unscored: Sequence[UnscoredRows],
) -> list[str]:
    """Return what a reader must know of a row, and why it has no rank."""
    row = measured[name]
    cells = {
        key: None if one is None else Estimate.of(one)
        for key, one in measured.items()
        if key == name or key not in MODEL_FREE
    }
    cell = cells[name]
    places = [place for place in unscored if place.cohort == table.cohort]
    remarks = []
    if name in MODEL_FREE:
        remarks.append("control: it looks at no model")
    if name in UPPER_BOUNDS:
        remarks.append("upper bound: it knows more than an auditor does")
    if facts is not None and facts.depends_on_rows:
        remarks.append("scores depend on the other rows")
    if facts is not None and facts.depends_on_labels and name not in MODEL_FREE:
        remarks.append("is told labels")
    if cell is None:
        remarks.append("not scored under this model")
    elif not isfinite(cell.value):
        remarks.append(f"no value: {_why_no_value(name, cell, places)}")
    elif not cell.available:
        remarks.append("no interval: too few rows")
    elif name not in MODEL_FREE and (cell.members, cell.nonmembers) != common_rows(cells):
        remarks.append(f"on rows of its own: {counts(cell)}")
    unlike = [
        one
        for place in places
        for one in place.missing
        if one.detector == name and one.unlike and (row is None or one.setting == row["setting"])
    ]
    if unlike:
        remarks.append(min(unlike, key=lambda one: one.p_value).sentence())
    return remarks


def _why_no_value(name: str, cell: Estimate, places: Sequence[UnscoredRows]) -> str:
    if min(cell.members, cell.nonmembers) >= 2:
        return "all its scores are equal"
    reasons = (one.reason for place in places for one in place.reasons if one.detector == name)
    return next(reasons, "too few rows")
