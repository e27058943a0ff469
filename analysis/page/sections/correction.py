"""Whether a contaminated benchmark's score can be corrected, by estimator and detector."""

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from math import log2

import pyarrow as pa

from analysis.arm import UPPER_BOUNDS
from analysis.copy_bins import ALL
from analysis.correction.estimators import BY_SCORES, IMPUTED, NAIVE, ORACLE
from analysis.correction.question import ABOVE_CHANCE
from analysis.findings import Findings, Row, split_by_cohort
from analysis.page.crossed import AxisHeading, Crossed, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Section, answer, folded
from analysis.page.table import Table, copies_text
from analysis.page.view import ReportView, arm_suffix
from analysis.unit import POINTS, estimate_of

_DETECTORS = 3
"""Detectors of the picture."""
_SHARE = 0.3
_Head = Callable[[Row], AxisHeading]
_TITLE = "Error of the corrected score"
_OUTCOME = "contaminated"
_TARGETS = {"twin": "the clean twin's", "base": "the base model's, which lacks the background"}


def correction_section(
    table: pa.Table | None, axes: Sequence[str], view: ReportView
) -> Section | None:
    """Return the section; None if no model's answers could be corrected.

    Args:
        table: the question `correction`; None in results of an older version.
        axes: the swept axes.
        view: of the run, whose arm comes first.
    """
    arms = [] if table is None else split_by_cohort(table, axes)
    arms.sort(key=lambda arm: arm.cohort != view.best.table.cohort)
    parts = [
        arm.where(dataset=name, outcome=_OUTCOME, contaminated_share=_SHARE)
        for arm in arms
        for name in arm.values("dataset")
    ]
    curves = [part for part in parts if part.rows]
    conditions = [_largest(rows.where(copies=ALL)) for rows in curves]
    at_chance = ", ".join(
        f"{row['dataset']}{arm_suffix(arm.cohort)}"
        for arm in arms
        for row in arm.rows
        if row["estimator"] == ABOVE_CHANCE and min(row["value"], row["low"]) <= 0
    )
    sentences = [_sentences(rows, view) for rows in conditions[:1]]
    if at_chance:
        sentences.append(
            f"Clean accuracy is within noise of chance, so nothing is corrected: {at_chance}."
        )
    tables = [_table(rows, view) for rows in conditions]
    several = [rows for rows in curves if len(rows.values("copies")) > 1]
    by_copies = [_copies_table(_largest(rows), view) for rows in several]
    further = [*tables[1:], *by_copies[1:]]
    return answer(
        "correction",
        "Score correction",
        "Can the benchmark's score be corrected?",
        " ".join(sentences),
        *(_picture(rows.where(copies=ALL), view) for rows in curves[:1]),
        *tables[:1],
        extra=[*by_copies[:1], folded("Other arms and datasets", further)],
        others="detectors",
    )


def _largest(curves: Findings) -> Findings:
    """Return the rows of the largest calibration set that there is for all numbers of copies."""
    by_copies = [curves.where(copies=label) for label in curves.values("copies")]
    sizes = [max(row["calibration_items"] for row in rows.rows) for rows in by_copies]
    return curves.where(calibration_items=min(sizes))


def _sentences(rows: Findings, view: ReportView) -> str:
    """Return the inflation, what the best corrector removes, and whether its AUC is the best."""
    naive, imputed = (rows.row(estimator=name) for name in (NAIVE, IMPUTED))
    ranked = _ranked(rows)
    if naive is None or not ranked:
        return ""
    best = ranked[0]
    text = f"{_place(rows)}: the score minus {_TARGETS[naive['reference']]} is {_error(naive)}. "
    text += f"Closest is {_name(best, view)}, {_error(best)}"
    if best["removed"] is not None:
        text += f", which removes {best['removed']:.0%} of the inflation"
    if imputed is not None:
        text += f"; imputed, without a detector: {_error(imputed)}"
    table = next(each for each in view.tables if each.cohort == rows.cohort)
    by_auc = max(ranked, key=lambda row: _auc(table, row))
    if by_auc["detector"] == best["detector"]:
        return f"{text}. It also has the best AUC."
    text += f". {view.title(by_auc['detector'])} has the best AUC; its best correction is "
    return f"{text}{_name(by_auc, view)}, {_error(by_auc)}."


def _auc(table: Findings, row: Row) -> float:
    """Return the AUC of a row's detector on its dataset, or on all if it is the only one."""
    name = row["detector"]
    cell = table.reported(name, dataset=row["dataset"]) or table.reported(name)
    return -1.0 if cell is None else cell.value


def _ranked(rows: Findings) -> list[Row]:
    """Return the estimates by detectors that are not bounds, the least root mean square first."""
    usable = [
        row
        for row in rows.rows
        if row["estimator"] in BY_SCORES and row["detector"] not in UPPER_BOUNDS and row["draws"]
    ]
    return sorted(usable, key=lambda row: row["rmse"])


def _place(rows: Findings) -> str:
    first = rows.rows[0]
    return (
        f"{first['dataset']}{arm_suffix(rows.cohort)}, {first['contaminated_share']:.0%} "
        f"contaminated, {first['calibration_items']} items of known membership"
    )


def _name(row: Row, view: ReportView) -> str:
    return f"{row['estimator'].replace('_', ' ')} with {view.title(row['detector'])}"


def _error(row: Row) -> str:
    return f"{POINTS.text(*estimate_of(row)[:3])} ({_rms(row)})"


def _rms(row: Row) -> str:
    return f"RMS {100 * row['rmse']:.1f}"


def _title(row: Row) -> str:
    return str(row["estimator"]).replace("_", " ").capitalize()


def _crossed(
    rows: Iterable[Row], head: _Head, column: _Head = lambda row: AxisHeading(_title(row))
) -> Crossed:
    """Return errors by two heads."""
    return cross(rows, head, column, unit=POINTS, cell=lambda row: row, counted=_rms)


def _table(rows: Findings, view: ReportView) -> Table:
    by_scores = [row for row in rows.rows if row["estimator"] in BY_SCORES]
    ordered = sorted(by_scores, key=lambda row: view.order.index(row["detector"]))
    caption = (
        f"{_place(rows)}. Points of accuracy: estimate minus target on average over draws of "
        "calibration and test set, with its 95 % interval and root mean square. Answers are the "
        "contaminated model's."
    )
    crossed = _crossed(ordered, lambda row: view.head(row["detector"]))
    return crossed.table(_TITLE, "Detector", caption)


def _copies_table(rows: Findings, view: ReportView) -> Table:
    """Return the errors by copies of the members, with the detector that corrects best."""
    best = [row["detector"] for row in _ranked(rows.where(copies=ALL))[:1]]
    crossed = _crossed(
        (row for row in rows.rows if row["detector"] in (None, *best)),
        lambda row: AxisHeading(copies_text(row["copies"]), note=f"{row['n_members']:,} members"),
    )
    caption = (
        f"{_place(rows)}. Members of other numbers of copies are left out, also from the "
        f"calibration set. Scores: {', '.join(map(view.title, best))}."
    )
    return crossed.table("Error by copies of the members", "Copies", caption)


def _picture(curves: Findings, view: ReportView) -> Picture | None:
    """Return panels of the error without scores, and with the detectors that correct best."""
    best = list(dict.fromkeys(row["detector"] for row in _ranked(_largest(curves))))
    shown = [
        row
        for pair in zip_longest((NAIVE, IMPUTED, ORACLE), best[:_DETECTORS], fillvalue="")
        for row in curves.rows
        if row["estimator"] == pair[0] or row["detector"] == pair[1]
    ]

    def panel_head(row: Row) -> AxisHeading:
        detector = row["detector"] or ""
        return AxisHeading(view.title(detector), view.kind(detector), _title(row))

    crossed = _crossed(
        shown,
        panel_head,
        lambda row: AxisHeading(f"{row['calibration_items']}", at=log2(row["calibration_items"])),
    )
    return picture(
        "correction",
        _TITLE,
        f"{shown[0]['dataset']}{arm_suffix(curves.cohort)}, {_SHARE:.0%} contaminated. Points of "
        "accuracy with 95 % bands, by the detectors that correct best. Thin line: naive again.",
        crossed.panels(_TITLE, "items of known membership"),
        1180,
        crossed.records("estimator", "calibration_items"),
    )
