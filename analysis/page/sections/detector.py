"""Detectors compared: paired differences as a picture, and all detectors of the headline's arm.

Settings are chosen on `tune`, numbers are of `test`. No detector leaves the table in silence:
controls, upper bounds and detectors without an interval or on separate rows have the reason in
it, and those that could not run are listed with what to set. What could not be scored follows.
"""

from collections.abc import Collection, Mapping, Sequence
from math import isfinite

from analysis.arm import MODEL_FREE, UPPER_BOUNDS, Arm, Cohort
from analysis.compared_rows import UnscoredRows
from analysis.findings import Findings, group_by
from analysis.findings import Row as Found
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AxisHeading, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import OPEN_ROWS, Fold, Items, Note, Section, answer, fold_items, folded
from analysis.page.table import Row, Table, TableColumn, listing, numbers, texts, with_noun
from analysis.page.view import LOSS, ReportView, setting_words, short_counts
from analysis.selection.ranking import common_rows, tune_auc
from analysis.summary import NOTHING_MEASURED, auc_text
from analysis.unit import AUC, POINTS, Entry, counts
from detect.detector_table import DetectorFacts
from detect.scores.table import score_notes
from detect.scoring import SkippedDetector

_BEST = "best"
"""The level to which differences to the chosen detector refer."""
_MAX_REASONS = 4


def detector_section(view: ReportView, notes: Sequence[str]) -> Section | None:
    """Return the sentence, the picture, the table, and what is folded behind them.

    Args:
        view: of the run.
        notes: what detectors note on their scores.
    """
    unscored, order = view.inputs.analysis.unscored, view.order
    end = order.index(LOSS) + 1 if LOSS in order else len(order)
    end = max(order.index(view.best.detector) + 1, min(max(end, 2), OPEN_ROWS))
    return answer(
        "detector",
        "Detector",
        "Which detector?",
        _sentence(view),
        _picture(view),
        _table(view, end),
        *_set_apart(unscored),
        extra=[
            left_out_fold(view.inputs.left_out),
            *_unscored_folds(unscored),
            fold_items("Notes of detectors", notes),
        ],
        open_rows=end,
        others="detectors and controls",
    )


def unmeasured_section(left_out: Sequence[SkippedDetector]) -> Section | None:
    """Return the section of a run without any AUC."""
    parts = [NOTHING_MEASURED, left_out_table(left_out)]
    return answer("detector", "Detector", "Which detector?", "", extra=parts)


def _sentence(view: ReportView) -> str:
    """Return the chosen detector, the number of indistinguishable ones, its lead over `loss`."""
    best, gaps = view.best, view.differences
    start = f"{view.name}, with {auc_text(best.cell)}"
    estimates = map(Estimate.of, gaps.where(reference=_BEST).rows)
    measured = [gap for gap in estimates if gap.available]
    alike = sum(gap.contains(0) for gap in measured)
    others = f"{alike} of {len(measured)} others are indistinguishable from it"
    if not measured:
        return f"{start}; nothing else was compared with it."
    ahead = sum(gap.low > 0 for gap in measured)
    if ahead:
        others += f", {ahead} {'is' if ahead == 1 else 'are'} ahead of it on the test split"
    over = gaps.get(detector=best.detector, reference=LOSS)
    if over is None or not over.available:
        return f"{start}; {others}."
    lead = POINTS.text(over.value, over.low, over.high)
    verdict = "may be none" if over.contains(0) else "is real" if over.low > 0 else "is a loss"
    return f"{start}; {others}, and its lead over plain Loss, {lead}, {verdict}."


def _picture(view: ReportView) -> Picture | None:
    """Return the paired differences to the chosen detector and to loss."""
    gaps = view.differences
    compared = {*gaps.values("detector"), view.best.detector}
    names = [name for name in view.shown if name in compared]
    references = [
        (key, reference, AxisHeading(f"minus {view.title(reference)}", note=note, name=reference))
        for key, reference, note in (
            (_BEST, view.best.detector, "simultaneous"),
            (LOSS, LOSS, "individually"),
        )
        if key in gaps.values("reference") and (key == _BEST or view.best.detector != LOSS)
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
    arm = f", {view.arm}" if view.arm else ""
    return picture(
        "differences",
        "Paired differences",
        f"In points (hundredths of AUC), on the same texts, 95 % intervals{arm}; "
        f"{short_counts(view.best.cell)}. Those to {view.name} are simultaneous.",
        crossed.matrix() if len(names) > 1 else None,
        560,
        crossed.records("detector", "reference"),
    )


def _table(view: ReportView, end: int) -> Table:
    measured = {name: _metrics_of(name, view).reported_row(name) for name in view.order}
    return Table(
        title=f"The {end} first" if end < len(view.order) else "Every detector",
        columns=(
            TableColumn("Detector"),
            *numbers("AUC, tuning split", "AUC, test split", "Points over Loss"),
            *texts("Required evidence"),
        ),
        rows=tuple(_row(view, name, measured) for name in view.order),
        caption=f"{view.where}All datasets pooled, members with a copy; "
        f"{short_counts(view.best.cell)}. Settings and detector were chosen on the tuning split, "
        "so its AUCs are optimistic. Bold over Loss: the interval excludes 0.",
        style="detectors",
    )


def _row(view: ReportView, name: str, measured: Mapping[str, Found | None]) -> Row:
    row, facts = measured[name], view.facts.get(name)
    setting = tuple(filter(None, [setting_words(row["setting"])])) if row is not None else ()
    first = view.bold.get(view.best.table.cohort) == name
    tune = tune_auc(_metrics_of(name, view), name)
    return (
        Entry(
            view.title(name),
            notes=(*setting, *_remarks(name, facts, measured, view)),
            kind=view.kind(name),
        ),
        Entry(AUC.number(tune), kind="interval", strong=first),
        AUC.entry(row, best=first),
        POINTS.entry(view.differences.row(detector=name, reference=LOSS)),
        (facts.access if facts else "not declared"),
    )


def left_out_table(left_out: Sequence[SkippedDetector]) -> Table | None:
    """Return the detectors that could not run, with what to do; None if all ran."""
    return listing(
        "Detectors not in this run",
        ("Detector", "Lacks", "What to do"),
        [(detector.detector, " and ".join(detector.lacks), detector.hint) for detector in left_out],
        "The experiment selects all detectors; these lack required evidence.",
    )


def left_out_fold(left_out: Sequence[SkippedDetector]) -> Fold | None:
    """Return the same, folded."""
    table = left_out_table(left_out)
    return Fold(f"{table.title}: {len(table.rows)}", [table]) if table else None


def _metrics_of(name: str, view: ReportView) -> Findings:
    """Return the metrics that a detector is in; a control is the same for every model."""
    tables = [view.best.table, *(view.tables if name in MODEL_FREE else ())]
    return next((table for table in tables if table.reported_row(name)), tables[0])


def _remarks(
    name: str, facts: DetectorFacts | None, measured: Mapping[str, Found | None], view: ReportView
) -> list[str]:
    """Return the remarks on a row, and the reason if it has no rank."""
    row = measured[name]
    cells = {
        key: None if estimate is None else Estimate.of(estimate)
        for key, estimate in measured.items()
        if key == name or key not in MODEL_FREE
    }
    cell = cells[name]
    unscored = view.inputs.analysis.unscored
    places = [place for place in unscored if place.cohort == view.best.table.cohort]
    remarks = []
    if name in MODEL_FREE:
        remarks.append("control: it uses no model")
    if name in UPPER_BOUNDS:
        remarks.append("upper bound: it knows more than an auditor does")
    if facts is not None and facts.depends_on_rows:
        remarks.append("scores depend on the other rows")
    if facts is not None and facts.depends_on_labels and name not in MODEL_FREE:
        remarks.append("is given labels")
    if cell is None:
        remarks.append("not scored under this model")
    elif not isfinite(cell.value):
        remarks.append(f"no value: {_why_no_value(name, cell, places)}")
    elif not cell.available:
        remarks.append("no interval: too few rows")
    elif name not in MODEL_FREE and (cell.members, cell.nonmembers) != common_rows(cells):
        remarks.append(f"on its own rows: {counts(cell)}")
    unlike = [
        estimate
        for place in places
        for estimate in place.missing
        if estimate.detector == name
        and estimate.unlike
        and (row is None or estimate.setting == row["setting"])
    ]
    if unlike:
        remarks.append(min(unlike, key=lambda estimate: estimate.p_value).sentence())
    return remarks


def _why_no_value(name: str, cell: Estimate, places: Sequence[UnscoredRows]) -> str:
    if min(cell.members, cell.nonmembers) >= 2:
        return "all its scores are equal"
    failures = (failure for place in places for failure in place.reasons)
    return next((f.reason for f in failures if f.detector == name), "too few rows")


def _set_apart(unscored: Sequence[UnscoredRows]) -> list[Note]:
    """Return notes on settings that were measured on separate rows, over all pools."""
    apart = ((column, failed, place.rows) for place in unscored for column, failed in place.apart)
    return [
        Note(
            f"{detector} ({setting}) could not score {sum(failed for _, failed, _ in pools):,} of "
            f"{sum(rows for *_, rows in pools):,} test rows in {with_noun(len(pools), 'pool')} "
            "(model × dataset × seed), and is measured there on the rows that it scored.",
            "note loud",
        )
        for (detector, setting), pools in group_by(apart, lambda pool: pool[0]).items()
    ]


def _unscored_folds(unscored: Sequence[UnscoredRows]) -> list[Fold | None]:
    """List pools with separately measured rows, and rows that left every comparison."""
    left_out = sum(place.left_out for place in unscored)
    rows = sum(place.rows for place in unscored)
    removed = [
        f"{_place(place)}: {place.left_out} of {place.rows}. {_reasons(place)}"
        for place in unscored
        if place.left_out
    ]
    apart = [
        f"{_place(place)}: {_settings_apart(place)}{_reasons(place)}"
        for place in unscored
        if place.apart
    ]
    return [
        folded("Affected rows and reasons", [Items(apart)] if apart else []),
        folded(
            "Rows that were removed from every comparison because a detector could not score "
            f"them: {left_out} of {rows} over all models, seeds and datasets",
            [Items(removed)] if removed else [],
        ),
    ]


def _settings_apart(place: UnscoredRows) -> str:
    return "".join(
        f"{column.detector} ({column.setting}) {failed} of {place.rows}. "
        for column, failed in place.apart
    )


def _place(place: UnscoredRows) -> str:
    parts = (place.cohort.model, place.cohort.label(), f"seed {place.seed}", place.dataset)
    return " · ".join(part for part in parts if part)


def _reasons(place: UnscoredRows) -> str:
    reasons = place.reasons[:_MAX_REASONS]
    return "; ".join(f"{name}: {reason} ({rows})" for name, reason, rows in reasons) + "."


def detector_notes(arms: Sequence[Arm], *, besides: Collection[str]) -> list[str]:
    """Return the detectors' notes on the scores of the models, each note once.

    Args:
        arms: the scored models.
        besides: notes that the page shows elsewhere.
    """
    noted: dict[str, list[str]] = {}
    for arm in arms:
        label = Cohort(tuple(arm.axes.items()), arm.model).label()
        model = " · ".join(part for part in (arm.model, label, f"seed {arm.seed}") if part)
        for note in score_notes(arm.scores):
            if note not in besides:
                noted.setdefault(note, []).append(model)
    return [
        note if len(models) == len(arms) else f"{note} ({'; '.join(models)})"
        for note, models in noted.items()
    ]
