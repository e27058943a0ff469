"""The section on accuracy gains: its arms, numbers, order and picture."""

import pyarrow as pa

from analysis.findings import question_table
from analysis.page.parts import Fold, pictures_in
from analysis.page.sections.accuracy import accuracy_section
from analysis.page.table import Table
from analysis.task_accuracy.contamination import MEAN, Quantity
from tests.analysis.viewing import view_of

ALL = [
    *(Quantity("accuracy", side, when) for side in ("member", "nonmember")
      for when in ("before", "after")),
    Quantity("change", "member", ""),
    Quantity("change", "nonmember", ""),
    Quantity("excess", "", ""),
]  # fmt: skip


def accuracy(datasets: list[str], rates: list[str], quantities=ALL) -> pa.Table:
    counts = {"n_members": 20, "n_nonmembers": 30, "n_seeds": 2}
    return question_table("accuracy", ["train.lr"], [
        {"train.lr": rate, "dataset": dataset, "scoring": scoring, **quantity._asdict(),
         "value": 0.1 * number, "low": 0.0, "high": 1.0, **counts}
        for rate in rates
        for dataset in datasets
        for scoring in ("plain", "calibrated")
        for number, quantity in enumerate(quantities)
    ])  # fmt: skip


def tables_of(table: pa.Table) -> dict[str, Table]:
    parts = [*accuracy_section(table, ["train.lr"], None).parts]
    parts += [inner for part in parts if hasattr(part, "parts") for inner in part.parts]
    folded = {part.title: part.parts[0] for part in parts if isinstance(part, Fold)}
    return {part.title: part for part in parts if isinstance(part, Table)} | folded


def test_mean_comes_first_and_datasets_are_separate() -> None:
    tables = tables_of(accuracy(["a", "b", MEAN], ["1e-4", "1e-3"]))
    plain = tables["Change of accuracy, plain scores"]
    assert [row[0].notes for row in plain.rows] == [
        ("mean of the datasets: 20 members, 30 non-members, 2 seeds",)
    ] * 2
    assert [entry.text for entry in plain.rows[0][1:]] == ["+60.0", "+40.0", "+50.0"]
    shares = tables["Accuracy before and after"]
    assert [entry.text for entry in shares.rows[0][1:]] == ["0.00", "0.10", "0.20", "0.30"]
    assert len(tables["By dataset, plain scores"].rows) == 4
    assert len(tables["With calibrated scores"].rows) == 2


def test_one_dataset_has_no_mean_and_a_missing_base_leaves_gaps() -> None:
    after = [quantity for quantity in ALL if quantity.phase == "after"]
    tables = tables_of(accuracy(["a"], [""], after))
    (row,) = tables["Change of accuracy, plain scores"].rows
    assert row[0].text == "All arms"
    assert row[0].notes[0].startswith("a: ")
    assert {entry.text for entry in row[1:]} == {"–"}
    (shares,) = tables["Accuracy before and after"].rows
    assert [entry.text == "–" for entry in shares[1:]] == [True, False, True, False]
    assert not any(title.startswith("By dataset") for title in tables)


def test_picture_shows_all_arms_with_a_base_accuracy(analysed) -> None:
    view = view_of(*analysed)
    section = accuracy_section(accuracy(["a", "b", MEAN], ["1e-4", "2"]), ["train.lr"], view)
    (picture,) = pictures_in(section.parts)
    assert [(row["arm"], row["scoring"], round(row["value"], 1)) for row in picture.rows] == [
        (arm, scoring, 0.6) for scoring in ("plain", "calibrated") for arm in ("lr 1e-4", "lr 2")
    ]
    hover = ": +60.0 points [+0.0, +100.0] · 20 members, 30 non-members</title>"
    assert picture.drawing.wide.count(hover) == 4
    after = [quantity for quantity in ALL if quantity.phase == "after"]
    without = accuracy_section(accuracy(["a"], [""], after), ["train.lr"], view)
    assert list(pictures_in(without.parts)) == []
