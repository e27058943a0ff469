"""What the benchmark scores gained, by arm and by dataset."""

from collections.abc import Mapping, Sequence

from analysis.page.grids import difference, interval
from analysis.page.parts import Fold, Part, Picture, present
from analysis.page.table import Column, Entry, Table, numbers
from analysis.task_accuracy.accuracy_gain import AccuracyGainRow, AccuracyGainTable


def accuracy_parts(
    gains: Sequence[AccuracyGainTable], pictures: Mapping[str, Picture]
) -> list[Part]:
    """Return the section on the accuracy of tasks.

    Args:
        gains: a table a way of scoring.
        pictures: the figures by name.
    """
    parts: list[Part] = present(pictures.get("accuracy-gain"))
    for at, gain in enumerate(gains):
        title = f"Task accuracy, {gain.scoring} scores"
        tables = _tables(gain.rows, title)
        parts += tables if at == 0 else [Fold(f"With {gain.scoring} scores", tables)]
        if gain.by_dataset:
            by_dataset = _tables(gain.by_dataset, f"{title}, by dataset")
            parts.append(Fold(f"By dataset, {gain.scoring} scores", by_dataset))
    parts.append(
        "Answers are ranked by their log-probability after the question; where answers are texts, "
        "it is divided by their bytes. Calibrated scores are relative to those after a question "
        "without content, so a model that always prefers one label gains nothing."
    )
    return parts


def _tables(rows: Sequence[AccuracyGainRow], title: str) -> list[Table]:
    heads = [
        Entry(
            row.arm or "all arms",
            notes=(
                f"{'mean of the datasets' if row.dataset == 'mean' else row.dataset}: {row.note}",
            ),
        )
        for row in rows
    ]
    changed = numbers("Excess", "Change, members", "Change, non-members")
    sides = numbers("Members before", "Members after", "Non-members before", "Non-members after")
    return [
        Table(
            title=f"{title}: changes",
            columns=(Column("Arm"), *changed),
            rows=tuple(
                (head, *map(difference, row.changes)) for head, row in zip(heads, rows, strict=True)
            ),
            caption="Share of right answers after training minus before, on the same examples. "
            "Excess: the change of members minus that of non-members; bold: the interval leaves "
            "out 0.",
        ),
        Table(
            title=title,
            columns=(Column("Arm"), *sides),
            rows=tuple(
                (head, *(interval(cell, rate=True) for cell in row.accuracies))
                for head, row in zip(heads, rows, strict=True)
            ),
            caption="Share of right answers.",
        ),
    ]
