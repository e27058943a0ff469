"""Score correction of simulated arms, from files of scores and answers to findings."""

from math import isfinite
from pathlib import Path

import numpy as np
import pytest

from analysis.arm import cohorts, load_arm
from analysis.auc_cells import PreparedCohort
from analysis.correction.question import correction_rows
from analysis.results import analyse
from analysis.selection.tuning import choose_settings
from analysis.settings import AnalysisSettings
from detect.task_accuracy.answers import read_accuracy, write_accuracy
from tests.analysis.correction.made import answered, without
from tests.analysis.synthetic import FAST, make_arm


def arm_of(folder: Path, seed: int = 0, **more):
    arm = make_arm(folder / f"arm-{seed}", axes={}, seed=seed, effect=0.8, datasets=("fictional",))
    return answered(arm, folder / f"answers-{seed}", seed=seed, **more)


WHOLE = FAST.model_copy(update={"min_members": 1000})
"""Without rows by copies, which take most of the time."""


def ask(*arms, settings: AnalysisSettings = WHOLE):
    ((cohort, same),) = cohorts(arms).items()
    loaded = [load_arm(arm) for arm in same]
    work = PreparedCohort.prepare(cohort, loaded, [], settings)
    return correction_rows(work, choose_settings(loaded, settings))


def test_findings_have_every_estimator_by_detector_size_and_share(tmp_path):
    table = analyse([arm_of(tmp_path)], WHOLE).tables["correction"]
    rows = table.to_pylist()
    assert rows[0]["estimator"] == "above_chance"
    assert rows[0]["low"] > 0
    assert {row["reference"] for row in rows} == {"twin"}
    assert {row["detector"] for row in rows} == {None, "loss", "zlib", "min_k", "surp"}
    assert {row["calibration_items"] for row in rows} == {None, 10, 20, 50, 100}
    assert {row["contaminated_share"] for row in rows} == {None, 0.1, 0.3, 0.5}
    naive = [row for row in rows if row["estimator"] == "naive"]
    assert len(naive) == 2 * 4 * 3
    assert all(row["value"] > 0 and row["draws"] == 200 for row in naive)
    assert {row["setting"] for row in rows if row["detector"] == "min_k"} <= {
        "k=0.1",
        "k=0.2",
        "k=0.5",
    }
    assert all(row["n_members"] <= 90 and row["n_nonmembers"] == 90 for row in rows[1:])


def test_an_accuracy_within_noise_of_chance_has_no_correction(tmp_path):
    arm = arm_of(tmp_path, clean=0.25)
    (row,) = ask(arm)
    assert row["estimator"] == "above_chance"
    assert not row["low"] > 0
    assert row["target"] == pytest.approx(row["value"] + 0.25)


def test_the_base_model_is_the_target_without_a_twin(tmp_path):
    rows = ask(without(arm_of(tmp_path), "twin_answers"))
    assert {row["reference"] for row in rows} == {"base"}


@pytest.mark.parametrize("names", [("answers",), ("twin_answers", "base_answers")])
def test_nothing_is_corrected_without_the_answers_of_an_arm_and_of_a_target(tmp_path, names):
    assert ask(without(arm_of(tmp_path), *names)) == []


def test_only_test_rows_that_all_models_answered_are_used(tmp_path):
    arm = arm_of(tmp_path)
    loaded = load_arm(arm)
    dropped = [e.example_id for e in loaded.examples if e.split == "test" and e.side == "nonmember"]
    folder = arm.further["twin_answers"]
    answers = read_accuracy(folder)
    write_accuracy(folder, [row._replace(reason="no question") if row.example_id in dropped[:20]
                            else row for row in answers])  # fmt: skip
    members = {e.example_id for e in loaded.examples
               if e.split == "test" and arm.copies.get(e.example_id, 0) > 0}  # fmt: skip
    row = next(row for row in ask(arm) if row["estimator"] == "naive")
    assert row["n_nonmembers"] == len(dropped) - 20
    assert row["n_members"] == len(members)


def test_members_without_a_copy_count_as_the_settings_require(tmp_path):
    arm = arm_of(tmp_path)
    apart, together = (
        next(row for row in ask(arm, settings=WHOLE.model_copy(update={"zero_copies": zero}))
             if row["estimator"] == "naive")
        for zero in ("apart", "nonmember")
    )  # fmt: skip
    # A group has two members here: of a group that was seen, no row is clean.
    loaded = load_arm(arm)
    unseen = loaded.test & loaded.member & (loaded.copies == 0)
    seen_groups = set(loaded.group[loaded.copies > 0])
    clean = sum(loaded.group[at] not in seen_groups for at in np.flatnonzero(unseen))
    assert together["n_nonmembers"] == apart["n_nonmembers"] + clean


def test_seeds_of_an_arm_have_one_row_each(tmp_path):
    rows = ask(*(arm_of(tmp_path, seed) for seed in range(3)))
    assert {row["n_seeds"] for row in rows} == {3}
    naive = [row for row in rows if row["estimator"] == "naive"]
    assert {row["draws"] for row in naive} == {600}
    assert all(isfinite(row["low"]) for row in naive)


def test_rows_by_copies_are_about_the_members_of_that_number(tmp_path):
    """Contamination changes the answers to members of five or more copies, and all of those."""
    arm = arm_of(tmp_path, gain=1.0, least_copies=5)
    place = {"estimator": "naive", "calibration_items": 10, "contaminated_share": 0.3,
             "outcome": "contaminated"}  # fmt: skip
    naive = {row["copies"]: row for row in ask(arm, settings=FAST) if place.items() <= row.items()}
    loaded = load_arm(arm)
    copies = loaded.copies[loaded.test & (loaded.copies > 0)]
    twin = {row.example_id: row.correct_plain for row in read_accuracy(arm.further["twin_answers"])}
    assert {"all", "3", "4", "5-8"} <= naive.keys()
    assert not any(label.endswith("+") for label in naive)
    for label, row in naive.items():
        low, high = (1, 99) if label == "all" else (int(label[0]), int(label[-1]))
        inside = loaded.test & (loaded.copies >= low) & (loaded.copies <= high)
        assert row["n_members"] == ((copies >= low) & (copies <= high)).sum() == inside.sum()
        wrong = [copies >= 5 and not twin[e.example_id] for e, copies, within
                 in zip(loaded.examples, loaded.copies, inside, strict=True) if within]  # fmt: skip
        assert row["value"] == pytest.approx(0.3 * np.mean(wrong), abs=0.02)
        if high < 5:
            assert row["value"] == 0


def test_members_of_one_number_of_copies_have_no_rows_by_copies(tmp_path):
    arm = make_arm(tmp_path / "arm", axes={}, seed=0, effect=0.8, datasets=("fictional",), fixed=2)
    assert {row["copies"] for row in ask(answered(arm, tmp_path), settings=FAST)} == {"all"}
