"""Whether the model got better at the task: what right answers gained, by arm and by dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from analysis.arm import Cohort, axis_column
from analysis.arm_labels import arm_words
from analysis.findings import Findings, Row, group_by
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AxisHeading, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import OPEN_ROWS, Fold, Note, Section, answer
from analysis.page.table import Table
from analysis.page.view import ReportView, capital
from analysis.task_accuracy.contamination import MEAN, SCORINGS
from analysis.unit import AUC, POINTS, Unit

Quantity = tuple[str, str, str]
"""A quantity, the side and the moment that it is of."""
_EXCESS = ("excess", "", "")
_CHANGES: Mapping[str, Quantity] = {
    "Excess": _EXCESS,
    "Members": ("change", "member", ""),
    "Non-members": ("change", "nonmember", ""),
}
_SHARES: Mapping[str, Quantity] = {
    f"{title} {moment}": ("accuracy", side, moment)
    for title, side in (("Members", "member"), ("Non-members", "nonmember"))
    for moment in ("before", "after")
}


def accuracy_section(
    table: pa.Table, axes: Sequence[str], view: ReportView | None
) -> Section | None:
    """Return the section on the accuracy of tasks.

    Args:
        table: the question `accuracy`.
        axes: the swept axes.
        view: of the run, whose arm the sentence is about; None if there is no headline.
    """
    places = _places(Findings(table.to_pylist(), axes))
    places.sort(key=lambda place: SCORINGS.index(_first_value(place, "scoring")))
    means = [place for place in places if _first_value(place, "dataset") == MEAN]
    divided = [place for place in places if means and place not in means]
    whole, by_dataset = (
        group_by(parts, lambda place: _first_value(place, "scoring"))
        for parts in (means or places, divided)
    )
    first, *others = whole
    shares = _table(whole[first], "Accuracy, plain scores", AUC, _SHARES)
    return answer(
        "accuracy",
        "Task",
        "Did task accuracy improve?",
        _sentence([*whole.values()], view),
        _picture([*whole.values()], view) if view else None,
        _changes(whole[first], "Change of accuracy, plain scores"),
        extra=[
            *(Fold(f"With {kind} scores", [_changes(whole[kind], "Change")]) for kind in others),
            Fold("Accuracy before and after", [shares]) if len(whole[first]) <= OPEN_ROWS else None,
            *(
                Fold(f"By dataset, {kind} scores", [_changes(apart, "By dataset")])
                for kind, apart in by_dataset.items()
            ),
            Note(
                "Answers are ranked by their log-probability after the question; where answers are "
                "texts, it is divided by their bytes. Calibrated scores are relative to the "
                "log-probabilities after a question without content.",
                "how",
            ),
        ],
        others="arms",
    )


def _places(findings: Findings) -> list[Findings]:
    """Return the rows of every way of scoring, arm and dataset, in order of the rows."""
    names = ("scoring", *map(axis_column, findings.axes), "dataset")
    keys = dict.fromkeys(tuple(row[name] for name in names) for row in findings.rows)
    return [findings.where(**dict(zip(names, values, strict=True))) for values in keys]


def _first_value(place: Findings, column: str) -> str:
    return str(place.rows[0][column])


def _cohort(place: Findings) -> Cohort:
    axes = tuple((axis, _first_value(place, axis_column(axis))) for axis in place.axes)
    return Cohort(axes, "contaminated")


def _quantity(place: Findings, quantity: Quantity) -> Row | None:
    """Return the row of a quantity; None without a base model."""
    return place.row(**dict(zip(("quantity", "side", "phase"), quantity, strict=True)))


def _sentence(gains: Sequence[Sequence[Findings]], view: ReportView | None) -> str:
    """Return the sentence on members' additional gain, as far as the intervals show it."""
    label = None if view is None else view.best.table.cohort.label()
    clauses = []
    for places in gains:
        # The row of the headline's arm; the first if it has none.
        place = next(
            (arm_place for arm_place in places if _cohort(arm_place).label() == label), places[0]
        )
        row = _quantity(place, _EXCESS)
        if row is None or not (gap := Estimate.of(row)).available:
            continue
        verdict = "a gain" if gap.low > 0 else "a loss"
        if gap.contains(0):
            verdict = "which is not distinguishable from none"
        number = POINTS.text(gap.value, gap.low, gap.high)
        clauses.append(f"by {_first_value(place, 'scoring')} scores {number}, {verdict}")
    if not clauses:
        return "Accuracy on members and non-members, before and after training."
    arm = f" ({view.arm})" if view is not None and view.arm else ""
    return f"Members' accuracy gain over non-members: {'; '.join(clauses)}{arm}."


def _picture(gains: Sequence[Sequence[Findings]], view: ReportView) -> Picture | None:
    chosen = view.best.table.cohort.label()

    def row(place: Findings) -> AxisHeading:
        label = _cohort(place).label()
        words = view.words(_cohort(place)) or "all arms"
        return AxisHeading(words, "chosen" if label == chosen else "", name=label)

    def column(place: Findings) -> AxisHeading:
        scoring = _first_value(place, "scoring")
        return AxisHeading(f"{capital(scoring)} scores", name=scoring)

    crossed = cross(
        (place for places in gains for place in places),
        row,
        column,
        unit=POINTS,
        cell=lambda place: _quantity(place, _EXCESS),
    )
    caption = "In points of accuracy, 95 % intervals; above 0: exposure improved accuracy."
    matrix = replace(crossed, rows=crossed.rows[:OPEN_ROWS]).matrix(row_height=26.0)
    records = crossed.records("arm", "scoring")
    return picture("accuracy-gain", "Members' additional gain", caption, matrix, 560, records)


def _head(place: Findings) -> AxisHeading:
    after = _quantity(place, ("accuracy", "member", "after"))
    dataset = _first_value(place, "dataset")
    note = "mean of the datasets" if dataset == MEAN else dataset
    if after is not None:
        cell = Estimate.of(after)
        seeds = f", {cell.seeds} seeds" if cell.seeds > 1 else ""
        note += f": {cell.members} members, {cell.nonmembers} non-members{seeds}"
    return AxisHeading(capital(arm_words(_cohort(place).axes)) or "All arms", note=note)


def _changes(places: Sequence[Findings], title: str) -> Table:
    caption = "Points of accuracy, after training minus before, on the same examples. "
    caption += "Excess: members' change minus non-members'; bold: the interval excludes 0."
    return _table(places, title, POINTS, _CHANGES, caption)


def _table(
    places: Sequence[Findings],
    title: str,
    unit: Unit,
    quantities: Mapping[str, Quantity],
    caption: str = "",
) -> Table:
    crossed = cross(
        ((place, *pair) for place in places for pair in quantities.items()),
        lambda item: _head(item[0]),
        lambda item: AxisHeading(item[1]),
        unit=unit,
        cell=lambda item: _quantity(item[0], item[2]),
    )
    return crossed.table(title, "Arm", caption)
