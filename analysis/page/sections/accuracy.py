"""Whether the model got better at the task: what right answers gained, by arm and by dataset."""

from collections.abc import Sequence
from dataclasses import replace

from analysis.page.crossed import AUC, POINTS, Head, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Columns, Fold, Note, Part, present
from analysis.page.table import Column, Entry, Table, numbers
from analysis.page.view import View, capital
from analysis.task_accuracy.accuracy_gain import AccuracyGainRow, AccuracyGainTable

_MAX_ROWS = 12


def accuracy_parts(gains: Sequence[AccuracyGainTable], view: View | None) -> list[Part]:
    """Return the section on the accuracy of tasks.

    Args:
        gains: a table a way of scoring.
        view: of the run, whose arm the sentence is about; None where there is no headline.
    """
    first, others = gains[0], gains[1:]
    plain = _changes(first.rows, "Change of right answers, plain scores")
    folds = [Fold(f"With {one.scoring} scores", [_changes(one.rows, "Change")]) for one in others]
    if len(first.rows) <= _MAX_ROWS:
        folds.append(Fold("Right answers before and after", [_shares(first.rows)]))
    folds += [
        Fold(f"By dataset, {one.scoring} scores", [_changes(one.by_dataset, "By dataset")])
        for one in gains
        if one.by_dataset
    ]
    return present(
        Note(_sentence(gains, view), "say"),
        Columns(present(_picture(gains, view), plain), "answer"),
        list(folds),
        Note(
            "Answers are ranked by their log-probability after the question; where answers are "
            "texts, it is divided by their bytes. Calibrated scores are relative to those after a "
            "question without content.",
            "how",
        ),
    )


def _row_of(gain: AccuracyGainTable, view: View | None) -> AccuracyGainRow:
    """Return the row of the headline's arm; the first where there is no such."""
    label = None if view is None else view.best.table.cohort.label()
    return next((row for row in gain.rows if row.arm == label), gain.rows[0])


def _sentence(gains: Sequence[AccuracyGainTable], view: View | None) -> str:
    """Say what members gained more than non-members, as far as the intervals show it."""
    said = []
    for gain in gains:
        cell = _row_of(gain, view).changes[0]
        if cell is None or not cell.available:
            continue
        numbers_ = POINTS.text(cell.value, cell.low, cell.high)
        if cell.contains(0):
            verdict = "which cannot be told from none"
        else:
            verdict = "a gain" if cell.low > 0 else "a loss"
        said.append(f"by {gain.scoring} scores {numbers_}, {verdict}")
    if not said:
        return "Right answers of members and non-members, before and after training."
    where = f" ({view.arm})" if view is not None and view.arm else ""
    return f"What members gained in right answers beyond non-members: {'; '.join(said)}{where}."


def _picture(gains: Sequence[AccuracyGainTable], view: View | None) -> Picture | None:
    if view is None:
        return None
    chosen = view.best.table.cohort.label()
    crossed = cross(
        ((row, gain.scoring) for gain in gains for row in gain.rows),
        lambda item: Head(item[0].words or "all arms", "chosen" if item[0].arm == chosen else "",
                          name=item[0].arm),
        lambda item: Head(f"{capital(item[1])} scores", name=item[1]),
        unit=POINTS,
        cell=lambda item: item[0].changes[0],
    )  # fmt: skip
    shown = replace(crossed, rows=crossed.rows[:_MAX_ROWS])
    if (matrix := shown.matrix(row_height=26.0)) is None:
        return None
    caption = "In points of right answers, 95 % intervals; above 0: having seen the questions paid."
    records = crossed.records("arm", "scoring")
    return picture("accuracy-gain", "What members gained more", caption, matrix, 560, records)


def _heads(rows: Sequence[AccuracyGainRow]) -> list[Entry]:
    return [
        Entry(
            capital(row.words) or "All arms",
            notes=(
                f"{'mean of the datasets' if row.dataset == 'mean' else row.dataset}: {row.note}",
            ),
        )
        for row in rows
    ]


def _changes(rows: Sequence[AccuracyGainRow], title: str) -> Table:
    return Table(
        title=title,
        columns=(Column("Arm"), *numbers("Excess", "Members", "Non-members")),
        rows=tuple(
            (head, *map(POINTS.entry, row.changes))
            for head, row in zip(_heads(rows), rows, strict=True)
        ),
        caption="Points of right answers, after training less before, on the same examples. "
        "Excess: members' change less non-members'; bold: the interval leaves out 0.",
    )


def _shares(rows: Sequence[AccuracyGainRow]) -> Table:
    sides = ("Members before", "Members after", "Non-members before", "Non-members after")
    return Table(
        title="Share of right answers, plain scores",
        columns=(Column("Arm"), *numbers(*sides)),
        rows=tuple(
            (head, *(AUC.entry(cell) for cell in row.accuracies))
            for head, row in zip(_heads(rows), rows, strict=True)
        ),
    )
