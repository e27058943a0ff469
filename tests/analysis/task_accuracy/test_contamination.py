"""The effect of contamination on accuracy against manual counts and simulation."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import t as student

from analysis.findings import Findings
from analysis.intervals.estimate import Estimate
from analysis.settings import AnalysisSettings
from analysis.task_accuracy.contamination import (
    MEAN,
    AccuracyArm,
    Quantity,
    accuracy_table,
)
from detect.task_accuracy.answers import AccuracyRow, write_accuracy
from inject.errors import InputError
from inject.examples.example import Example, write_examples
from scripts.calibration.cells.accuracy_and_checks import GainDesign, one_gain

SETTINGS = AnalysisSettings(replicates=400)
EXCESS = Quantity("excess", "", "")


def write_arm(
    folder: Path,
    rows: list[tuple[str, str, bool, bool]],
    *,
    seed: int = 0,
    axes: dict[str, str] | None = None,
    groups: list[str] | None = None,
    base: bool = True,
    unspiked: int = 0,
) -> AccuracyArm:
    """Write an arm from (dataset, side, right before, right after); calibrated is inverted."""
    folder.mkdir(parents=True, exist_ok=True)
    examples, before, after = [], [], []
    copies: dict[str, int] = {}
    for index, (dataset, side, was, now) in enumerate(rows):
        name = f"e{seed}-{index}"
        examples.append(
            Example(
                example_id=name,
                dataset=dataset,
                source_id=name,
                group=groups[index] if groups else name,
                text=name,
                side=side,
            )
        )
        for answers, right in ((before, was), (after, now)):
            answers.append(AccuracyRow(name, dataset, side, 2, right, not right, 0.5, 0.5))
        if side == "member":
            copies[name] = 1
    for name in list(copies)[:unspiked]:
        copies[name] = 0
    write_examples(folder, examples)
    for moment, rows in (("before", before), ("after", after)):
        (folder / moment).mkdir()
        write_accuracy(folder / moment, rows)
    return AccuracyArm(
        axes=axes or {},
        seed=seed,
        before=folder / "before" if base else None,
        after=folder / "after",
        examples=folder,
        copies=copies,
    )


def by_quantity(
    table: pa.Table, dataset: str = "a", scoring: str = "plain"
) -> dict[Quantity, Estimate]:
    return {
        Quantity(*(row[name] for name in Quantity._fields)): Estimate.of(row)
        for row in Findings(table.to_pylist()).where(dataset=dataset, scoring=scoring).rows
    }


def block(dataset: str, side: str, **counts: int) -> list[tuple[str, str, bool, bool]]:
    """Return rows by outcome: `wr` is wrong before and right after."""
    outcome = {"r": True, "w": False}
    return [
        (dataset, side, outcome[name[0]], outcome[name[1]])
        for name, count in counts.items()
        for _ in range(count)
    ]


ROWS = [
    *block("a", "member", rr=10, wr=6, rw=1, ww=3),
    *block("a", "nonmember", rr=9, wr=2, rw=1, ww=8),
    *block("b", "member", rr=4, ww=6),
    *block("b", "nonmember", rr=8, ww=2),
]


def test_quantities_match_a_manual_count(tmp_path: Path) -> None:
    table = accuracy_table([write_arm(tmp_path, ROWS)], SETTINGS)
    values = {quantity: estimate.value for quantity, estimate in by_quantity(table).items()}
    assert values == {
        Quantity("accuracy", "member", "before"): pytest.approx(11 / 20),
        Quantity("accuracy", "member", "after"): pytest.approx(16 / 20),
        Quantity("accuracy", "nonmember", "before"): pytest.approx(10 / 20),
        Quantity("accuracy", "nonmember", "after"): pytest.approx(11 / 20),
        Quantity("gap", "", "before"): pytest.approx(1 / 20),
        Quantity("gap", "", "after"): pytest.approx(5 / 20),
        Quantity("change", "member", ""): pytest.approx(5 / 20),
        Quantity("change", "nonmember", ""): pytest.approx(1 / 20),
        EXCESS: pytest.approx(4 / 20),
    }
    mean = by_quantity(table, MEAN)
    # The mean over datasets, although one of them is half as large.
    assert mean[EXCESS].value == pytest.approx((4 / 20 + 0) / 2)
    assert mean[Quantity("gap", "", "after")].value == pytest.approx((0.25 - 0.4) / 2)
    assert (mean[EXCESS].members, mean[EXCESS].nonmembers) == (30, 30)
    opposite = by_quantity(table, scoring="calibrated")
    assert opposite[EXCESS].value == pytest.approx(-4 / 20)
    for row in table.to_pylist():
        assert row["low"] <= row["value"] <= row["high"]
        assert row["low"] < row["high"]


def test_the_change_is_paired(tmp_path: Path) -> None:
    # The same accuracies; examples keep their answers, or swap them.
    unchanged = [*block("a", "member", rr=30, ww=20, wr=5), *block("a", "nonmember", rr=5, ww=5)]
    swapped = [
        *block("a", "member", wr=25, rw=20, rr=10),
        *block("a", "nonmember", rr=5, ww=5),
    ]
    widths = []
    for name, rows in (("kept", unchanged), ("swapped", swapped)):
        cells = by_quantity(accuracy_table([write_arm(tmp_path / name, rows)], SETTINGS))
        change = cells[Quantity("change", "member", "")]
        assert change.value == pytest.approx(5 / 55)
        widths.append(change.high - change.low)
    assert widths[0] < widths[1] / 2


def test_members_without_a_copy_are_apart_or_non_members(tmp_path: Path) -> None:
    arm = write_arm(tmp_path, ROWS, unspiked=4)
    apart = by_quantity(accuracy_table([arm], SETTINGS))
    after = Quantity("accuracy", "member", "after")
    assert (apart[after].members, apart[after].nonmembers) == (16, 20)
    assert apart[after].value == pytest.approx(12 / 16)
    joined = AnalysisSettings(replicates=400, zero_copies="nonmember")
    counted = by_quantity(accuracy_table([arm], joined))
    assert (counted[after].members, counted[after].nonmembers) == (16, 24)
    assert counted[Quantity("accuracy", "nonmember", "after")].value == pytest.approx(15 / 24)


def test_seeds_are_combined_and_axes_stay_separate(tmp_path: Path) -> None:
    arms = [
        write_arm(tmp_path / f"{rate}-{seed}", ROWS, seed=seed, axes={"train.lr": rate})
        for rate in ("1e-4", "1e-3")
        for seed in (0, 1)
    ]
    rows = accuracy_table(arms, SETTINGS).to_pylist()
    excess = [row for row in rows if (row["quantity"], row["dataset"]) == ("excess", "a")]
    assert [(row["train.lr"], row["scoring"]) for row in excess] == [
        (rate, scoring) for rate in ("1e-4", "1e-3") for scoring in ("plain", "calibrated")
    ]
    assert {(row["n_seeds"], row["n_members"]) for row in excess} == {(2, 40)}
    with pytest.raises(InputError, match="two arms"):
        accuracy_table([arms[0], arms[0]], SETTINGS)


def test_unchanged_answers_have_a_nonzero_interval(tmp_path: Path) -> None:
    rows = [*block("a", "member", rr=20), *block("a", "nonmember", rr=20)]
    cells = by_quantity(accuracy_table([write_arm(tmp_path, rows)], SETTINGS))
    right = cells[Quantity("accuracy", "member", "after")]
    # Agresti and Coull for 20 of 20: two more right and wrong answers, Student's t for 20 rows.
    assert (right.value, right.high) == (1, 1)
    middle = 22 / 24
    variance = 20 / 19 * 20 * (1 - middle) ** 2 + 2 * (1 - middle) ** 2 + 2 * middle**2
    half = student.isf(0.025, 19) * np.sqrt(variance) / 24
    assert right.low == pytest.approx(middle - half)
    change = cells[Quantity("change", "member", "")]
    # Bonett and Price: one additional answer that turns right, and one that turns wrong.
    assert change.high == -change.low == pytest.approx(student.isf(0.025, 19) * np.sqrt(2) / 22)
    assert cells[EXCESS].low < change.low / 2


@pytest.mark.parametrize(
    ("design", "studies", "least"),
    [(GainDesign(5, 15), 100, 0.93), (GainDesign(5, 30, 3, 0.1), 60, 0.9)],
)
def test_intervals_cover_a_gain_over_five_datasets(
    design: GainDesign, studies: int, least: float
) -> None:
    """Reduced from scripts/calibration/cells: a bootstrap covered 92 and 83 % of these studies."""
    random = np.random.default_rng(0)
    gains = [one_gain(random, design=design, quantity="excess") for _ in range(studies)]
    assert np.mean([gain.low <= gain.truth <= gain.high for gain in gains]) >= least


def test_rows_that_share_a_passage_count_as_one(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows, groups = [], []
    for index in range(12):
        for side in ("member", "nonmember"):
            right = bool(random.random() < 0.5)
            rows += [("a", side, False, right)] * 5
            groups += [f"{side}{index}"] * 5
    after = Quantity("accuracy", "member", "after")
    separate = by_quantity(accuracy_table([write_arm(tmp_path / "x", rows)], SETTINGS))[after]
    shared = by_quantity(
        accuracy_table([write_arm(tmp_path / "y", rows, groups=groups)], SETTINGS)
    )[after]
    assert shared.high - shared.low > 1.5 * (separate.high - separate.low)
