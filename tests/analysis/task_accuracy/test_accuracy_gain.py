"""The rows of what the scores gained: which arms, which cells, in which order; their picture."""

from analysis.page.parts import pictures_in
from analysis.page.sections.accuracy import accuracy_parts
from analysis.task_accuracy.accuracy_gain import accuracy_gain_tables
from analysis.task_accuracy.contamination import MEAN, AccuracyCell, Quantity, accuracy_table
from tests.analysis.viewing import view_of

ALL = [
    *(Quantity("accuracy", side, when) for side in ("member", "nonmember")
      for when in ("before", "after")),
    Quantity("change", "member", ""),
    Quantity("change", "nonmember", ""),
    Quantity("excess", "", ""),
]  # fmt: skip


def cells(datasets: list[str], axes: dict[str, str], quantities=ALL) -> list[AccuracyCell]:
    return [
        AccuracyCell(
            axes=tuple(axes.items()),
            dataset=dataset,
            scoring=scoring,
            quantity=quantity,
            value=0.1 * number,
            low=0.0,
            high=1.0,
            n_members=20,
            n_nonmembers=30,
            n_seeds=2,
        )
        for dataset in datasets
        for scoring in ("plain", "calibrated")
        for number, quantity in enumerate(quantities)
    ]


def test_the_mean_stands_first_and_datasets_apart() -> None:
    table = accuracy_table(
        [
            *cells(["a", "b", MEAN], {"train.lr": "1e-4"}),
            *cells(["a", "b", MEAN], {"train.lr": "1e-3"}),
        ]
    )
    plain, calibrated = accuracy_gain_tables(table, ["train.lr"])
    assert (plain.scoring, calibrated.scoring) == ("plain", "calibrated")
    assert [(row.arm, row.dataset) for row in plain.rows] == [("lr 1e-4", MEAN), ("lr 1e-3", MEAN)]
    assert len(plain.by_dataset) == 4
    row = plain.rows[0]
    assert row.note == "20 members, 30 non-members, 2 seeds"
    assert [round(cell.value, 1) for cell in row.changes] == [0.6, 0.4, 0.5]
    assert [round(cell.value, 1) for cell in row.accuracies] == [0.0, 0.1, 0.2, 0.3]


def test_one_dataset_has_no_mean_and_no_base_leaves_gaps() -> None:
    after = [quantity for quantity in ALL if quantity.moment == "after"]
    [plain, _] = accuracy_gain_tables(accuracy_table(cells(["a"], {}, after)), [])
    [row] = plain.rows
    assert (row.arm, row.dataset, plain.by_dataset) == ("", "a", ())
    assert row.changes == (None, None, None)
    assert [cell is None for cell in row.accuracies] == [True, False, True, False]


def test_the_picture_shows_every_arm_that_has_a_before(analysed) -> None:
    view = view_of(*analysed)
    found = cells(["a", "b", MEAN], {"train.lr": "1e-4"}) + cells(
        ["a", "b", MEAN], {"train.lr": "2"}
    )
    (drawn,) = pictures_in(
        accuracy_parts(accuracy_gain_tables(accuracy_table(found), ["train.lr"]), view)
    )
    assert [(row["arm"], row["scoring"], round(row["value"], 1)) for row in drawn.rows] == [
        (arm, scoring, 0.6) for scoring in ("plain", "calibrated") for arm in ("lr 1e-4", "lr 2")
    ]
    hover = ": +60.0 points [+0.0, +100.0] · 20 members, 30 non-members</title>"
    assert drawn.drawing.wide.count(hover) == 4
    after = [quantity for quantity in ALL if quantity.moment == "after"]
    nothing = accuracy_gain_tables(accuracy_table(cells(["a"], {}, after)), [])
    assert list(pictures_in(accuracy_parts(nothing, view))) == []
