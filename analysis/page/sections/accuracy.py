"""Whether the model got better at the task: what right answers gained, by arm and by dataset."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from analysis.arm import Cohort, axis_column
from analysis.arm_words import arm_words
from analysis.findings import Findings, Row
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import Head, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Columns, Fold, Note, Part, present
from analysis.page.table import Column, Table, numbers
from analysis.page.view import View, capital
from analysis.task_accuracy.contamination import MEAN, SCORINGS
from analysis.unit import AUC, POINTS, Entry

_MAX_ROWS = 12
_SHARES = tuple((side, at) for side in ("member", "nonmember") for at in ("before", "after"))


class _Place(NamedTuple):
    """One arm under one way of scoring, on one dataset or on the mean of all."""

    scoring: str
    cohort: Cohort
    dataset: str
    found: Findings

    def row(self, quantity: str, side: str = "", moment: str = "") -> Row | None:
        """Return the row of a quantity; None without a base model."""
        return self.found.row(quantity=quantity, side=side, moment=moment)


def accuracy_parts(table: pa.Table, axes: Sequence[str], view: View | None) -> list[Part]:
    """Return the section on the accuracy of tasks.

    Args:
        table: the question `accuracy`.
        axes: the swept axes.
        view: of the run, whose arm the sentence is about; None where there is no headline.
    """
    places = _places(Findings(table.to_pylist(), axes))
    scorings = [name for name in SCORINGS if any(one.scoring == name for one in places)]
    means = any(one.dataset == MEAN for one in places)
    whole = {
        scoring: [
            one for one in places if one.scoring == scoring and (one.dataset == MEAN or not means)
        ]
        for scoring in scorings
    }
    first, *others = scorings
    folds = [Fold(f"With {name} scores", [_changes(whole[name], "Change")]) for name in others]
    if len(whole[first]) <= _MAX_ROWS:
        folds.append(Fold("Right answers before and after", [_shares(whole[first])]))
    by_dataset = [one for one in places if one.dataset != MEAN] if means else []
    folds += [
        Fold(f"By dataset, {name} scores", [_changes(parts, "By dataset")])
        for name in scorings
        if (parts := [one for one in by_dataset if one.scoring == name])
    ]
    shown = _changes(whole[first], "Change of right answers, plain scores")
    return present(
        Note(_sentence([*whole.values()], view), "say"),
        Columns(present(_picture([*whole.values()], view), shown), "answer"),
        list(folds),
        Note(
            "Answers are ranked by their log-probability after the question; where answers are "
            "texts, it is divided by their bytes. Calibrated scores are relative to those after a "
            "question without content.",
            "how",
        ),
    )


def _places(found: Findings) -> list[_Place]:
    """Return every arm, dataset and way of scoring, in order of the rows."""
    columns = [axis_column(axis) for axis in found.axes]
    keys = dict.fromkeys(
        (row["scoring"], *(row[name] for name in columns), row["dataset"]) for row in found.rows
    )
    return [
        _Place(
            scoring,
            Cohort(tuple(zip(found.axes, values, strict=True)), "contaminated"),
            dataset,
            found.where(
                scoring=scoring, dataset=dataset, **dict(zip(columns, values, strict=True))
            ),
        )
        for scoring, *values, dataset in keys
    ]


def _sentence(gains: Sequence[Sequence[_Place]], view: View | None) -> str:
    """Say what members gained more than non-members, as far as the intervals show it."""
    label = None if view is None else view.best.table.cohort.label()
    said = []
    for places in gains:
        # The row of the headline's arm; the first where there is no such.
        place = next((one for one in places if one.cohort.label() == label), places[0])
        row = place.row("excess")
        if row is None or not (gap := Estimate.of(row)).available:
            continue
        numbers_ = POINTS.text(gap.value, gap.low, gap.high)
        if gap.contains(0):
            verdict = "which cannot be told from none"
        else:
            verdict = "a gain" if gap.low > 0 else "a loss"
        said.append(f"by {place.scoring} scores {numbers_}, {verdict}")
    if not said:
        return "Right answers of members and non-members, before and after training."
    where = f" ({view.arm})" if view is not None and view.arm else ""
    return f"What members gained in right answers beyond non-members: {'; '.join(said)}{where}."


def _picture(gains: Sequence[Sequence[_Place]], view: View | None) -> Picture | None:
    if view is None:
        return None
    chosen = view.best.table.cohort.label()

    def row(place: _Place) -> Head:
        label = place.cohort.label()
        words = arm_words(place.cohort.axes) or "all arms"
        return Head(words, "chosen" if label == chosen else "", name=label)

    crossed = cross(
        (place for places in gains for place in places),
        row,
        lambda place: Head(f"{capital(place.scoring)} scores", name=place.scoring),
        unit=POINTS,
        cell=lambda place: place.row("excess"),
    )
    shown = replace(crossed, rows=crossed.rows[:_MAX_ROWS])
    if (matrix := shown.matrix(row_height=26.0)) is None:
        return None
    caption = "In points of right answers, 95 % intervals; above 0: having seen the questions paid."
    records = crossed.records("arm", "scoring")
    return picture("accuracy-gain", "What members gained more", caption, matrix, 560, records)


def _head(place: _Place) -> Entry:
    after = place.row("accuracy", "member", "after")
    note = "mean of the datasets" if place.dataset == MEAN else place.dataset
    if after is not None:
        seeds = f", {after['n_seeds']} seeds" if after["n_seeds"] > 1 else ""
        note += f": {after['n_members']} members, {after['n_nonmembers']} non-members{seeds}"
    return Entry(capital(arm_words(place.cohort.axes)) or "All arms", notes=(note,))


def _changes(places: Sequence[_Place], title: str) -> Table:
    quantities = (("excess", ""), ("change", "member"), ("change", "nonmember"))
    return Table(
        title=title,
        columns=(Column("Arm"), *numbers("Excess", "Members", "Non-members")),
        rows=tuple(
            (_head(place), *(POINTS.entry(place.row(*one)) for one in quantities))
            for place in places
        ),
        caption="Points of right answers, after training less before, on the same examples. "
        "Excess: members' change less non-members'; bold: the interval leaves out 0.",
    )


def _shares(places: Sequence[_Place]) -> Table:
    sides = ("Members before", "Members after", "Non-members before", "Non-members after")
    return Table(
        title="Share of right answers, plain scores",
        columns=(Column("Arm"), *numbers(*sides)),
        rows=tuple(
            (_head(place), *(AUC.entry(place.row("accuracy", *one)) for one in _SHARES))
            for place in places
        ),
    )
