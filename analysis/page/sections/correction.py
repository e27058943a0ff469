"""Whether a contaminated benchmark's score can be corrected, by estimator and detector."""

from collections.abc import Sequence

import pyarrow as pa

from analysis.arm import UPPER_BOUNDS
from analysis.correction.estimators import BY_SCORES, IMPUTED, NAIVE
from analysis.correction.question import ABOVE_CHANCE
from analysis.findings import Findings, Row, split_by_cohort
from analysis.page.crossed import AxisHeading, cross
from analysis.page.parts import Section, answer, folded
from analysis.page.table import Table
from analysis.page.view import ReportView, arm_suffix
from analysis.unit import POINTS, estimate_of

_SHARE = 0.3
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
    conditions = [
        Findings(rows, axes, {"dataset": name})
        for arm in arms
        for name in arm.values("dataset")
        if (rows := _condition(arm.where(dataset=name)))
    ]
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
    return answer(
        "correction",
        "Score correction",
        "Can the benchmark's score be corrected?",
        " ".join(sentences),
        *tables[:1],
        extra=[folded("Other arms and datasets", tables[1:])],
        others="detectors",
    )


def _condition(rows: Findings) -> list[Row]:
    """Return the rows of one outcome and share, and of the largest calibration set."""
    of_outcome = rows.where(outcome=_OUTCOME).rows
    errors = [row for row in of_outcome if row["contaminated_share"] == _SHARE]
    size = max((row["calibration_items"] for row in errors), default=0)
    return [row for row in errors if row["calibration_items"] == size]


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
    return f"{POINTS.text(*estimate_of(row)[:3])} (RMS {100 * row['rmse']:.1f})"


def _table(rows: Findings, view: ReportView) -> Table:
    by_scores = [row for row in rows.rows if row["estimator"] in BY_SCORES]
    crossed = cross(
        sorted(by_scores, key=lambda row: view.order.index(row["detector"])),
        lambda row: view.head(row["detector"]),
        lambda row: AxisHeading(row["estimator"].replace("_", " ").capitalize()),
        unit=POINTS,
        cell=lambda row: row,
        counted=lambda row: f"RMS {100 * row['rmse']:.1f}",
    )
    caption = f"{_place(rows)}. Points of accuracy: estimate minus target on average over draws of "
    caption += (
        "calibration and test set, with its 95 % interval and root mean square. Answers are the "
    )
    caption += "contaminated model's."
    return crossed.table("Error of the corrected score", "Detector", caption)
