"""Score correction of a user's file: what is read, refused and estimated."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from analysis.correction.user_file import check_above_chance, correct_items, read_items
from inject.errors import InputError

HEADS = ("correct", "member", "score", "clean_probability", "group")


def made_rows(
    seed: int, *, rows: int = 200, labelled: int = 40, strength: float = 5.0, passage: int = 1
) -> list[dict[str, str]]:
    """Answers to questions, half of which the model saw; the first ones are of known membership.

    The accuracy without contamination is 0.6.
    """
    draw = np.random.default_rng(seed)
    group = np.arange(rows + labelled) // passage
    member = np.isin(group, np.flatnonzero(draw.random(group.max() + 1) < 0.5))
    member[:labelled] = np.arange(labelled) % 2 == 0
    ability = np.clip(0.6 + 0.25 * draw.uniform(-1, 1, group.max() + 1), 0, 1)[group]
    right = (draw.random(len(group)) < ability) | (member & (draw.random(len(group)) < 0.6))
    score = strength * member + draw.standard_normal(len(group))
    return [
        {
            "correct": "right" if right[at] else "wrong",
            "member": ("member" if member[at] else "non-member") if at < labelled else "",
            "score": f"{score[at]:.5f}",
            "clean_probability": f"{ability[at]:.5f}",
            "group": f"row {at}" if at < labelled else f"g{group[at]}",
        }
        for at in range(len(group))
    ]  # fmt: skip


def write(path: Path, rows: list[dict[str, str]], heads=HEADS) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, heads, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def estimates(path: str, replicates: int = 200):
    results = correct_items(read_items(path, ["score"]), replicates=replicates)
    return {result.estimator: result.accuracy for result in results}


def test_known_rows_calibrate_and_the_others_are_corrected(tmp_path):
    rows = made_rows(0)
    items = read_items(write(tmp_path / "a.csv", rows), ["score"])
    assert items.numbers == {"corrected": 200, "known members": 20, "known non-members": 20,
                             "left out": 0}  # fmt: skip
    assert not (items.corrected & (items.member | items.nonmember)).any()
    naive = estimates(str(tmp_path / "a.csv"))["naive"]
    assert naive.value == pytest.approx(np.mean([row["correct"] == "right" for row in rows[40:]]))


def test_rows_that_share_a_group_with_a_known_one_are_left_out(tmp_path):
    rows = made_rows(1)
    rows[50]["group"] = rows[60]["group"] = rows[3]["group"]
    items = read_items(write(tmp_path / "a.csv", rows), ["score"])
    assert items.numbers["left out"] == 2
    assert not set(items.group[items.corrected]) & set(items.group[items.member | items.nonmember])


def test_a_sharp_detector_recovers_the_clean_accuracy(tmp_path):
    accuracies = estimates(write(tmp_path / "a.csv", made_rows(2, rows=1500)))
    assert accuracies["naive"].low > 0.65
    for name in ("weighted", "hard", "imputed", "combined"):
        assert accuracies[name].low < 0.6 < accuracies[name].high, name


@pytest.mark.parametrize("passage", [1, 4])
def test_intervals_hold_the_clean_accuracy(tmp_path, passage: int):
    """Known truth, with a detector that separates the sides."""
    hits: dict[str, list[bool]] = {}
    for seed in range(60):
        rows = made_rows(seed, passage=passage, strength=8.0)
        for name, accuracy in estimates(write(tmp_path / "a.csv", rows)).items():
            hits.setdefault(name, []).append(accuracy.low <= 0.6 <= accuracy.high)
    for name in ("weighted", "hard", "imputed", "combined"):
        assert np.mean(hits[name]) >= 0.87, (name, np.mean(hits[name]))
    assert np.mean(hits["naive"]) < 0.3


def test_without_a_clean_model_the_accuracy_of_known_non_members_is_imputed(tmp_path):
    rows = made_rows(3)
    path = write(tmp_path / "a.csv", rows, [n for n in HEADS if n != "clean_probability"])
    accuracies = estimates(path)
    answers = [row["correct"] == "right" for row in rows if row["member"] == "non-member"]
    assert accuracies["imputed"].value == pytest.approx(np.mean(answers))
    assert accuracies["combined"].available


def test_missing_scores_are_counted(tmp_path):
    rows = made_rows(4)
    for row in rows[5:90:5]:
        row["score"] = ""
    items = read_items(write(tmp_path / "a.csv", rows), ["score"])
    results = correct_items(items, replicates=100)
    assert {r.unscored for r in results if r.scores} == {17}
    assert all(r.accuracy.available for r in results)


def test_columns_that_the_first_line_lacks_are_read(tmp_path):
    rows = made_rows(12)
    paths = [tmp_path / "all.jsonl", tmp_path / "sparse.jsonl"]
    lines = [json.dumps(row) for row in rows]
    paths[0].write_text("\n".join(lines))
    sparse = {key: rows[0][key] for key in ("correct", "member", "score")}
    paths[1].write_text("\n".join([json.dumps(sparse), *lines[1:]]))
    whole, partly = (read_items(str(path), ["score"]) for path in paths)
    assert np.isnan(partly.clean[0])
    assert (partly.clean[1:] == whole.clean[1:]).all()
    assert len(set(partly.group.tolist())) == len(set(whole.group.tolist()))


def test_exact_name_of_a_column_wins_and_the_other_is_not_used(tmp_path):
    rows = [{**row, "Score": "0"} for row in made_rows(13)]
    path = write(tmp_path / "a.csv", rows, [*HEADS, "Score"])
    items = read_items(path, ["score"])
    assert items.unused == ("Score",)
    assert items.scores["score"].std() > 0
    with pytest.raises(InputError, match="columns 'score', 'Score' differ by case only"):
        read_items(path, ["SCORE"])


@pytest.mark.parametrize("side", ["member", "non-member"])
def test_scores_that_cannot_be_calibrated_are_refused(tmp_path, side: str):
    rows = made_rows(14)
    for row in [row for row in rows if row["member"] == side][9:]:
        row["score"] = ""
    message = f"9 known {side}s have a value in column 'score'"
    with pytest.raises(InputError, match=message) as raised:
        read_items(write(tmp_path / "a.csv", rows), ["score"])
    assert raised.value.allowed == "10 or more"


def test_few_groups_have_no_interval(tmp_path):
    rows = made_rows(15)
    for row in rows[40:]:
        row["group"] = "one"
    accuracies = estimates(write(tmp_path / "a.csv", rows))
    assert np.isfinite(accuracies["naive"].value)
    assert {(a.available, a.reason) for a in accuracies.values()} == {
        (False, "fewer than 10 groups of rows of a kind")
    }


def test_estimate_without_rows_has_no_interval(tmp_path):
    """All corrected rows have members' scores, so that no row is below 0.5."""
    rows = made_rows(16, strength=9.0)
    for row in rows[40:]:
        row["score"] = "9"
    hard = estimates(write(tmp_path / "a.csv", rows))["hard"]
    assert np.isnan([hard.value, hard.low, hard.high]).all()
    assert hard.reason == "no row is left"


def test_equal_scores_of_equal_sides_keep_all_rows(tmp_path):
    rows = [{**row, "score": "0.1"} for row in made_rows(17)]
    accuracies = estimates(write(tmp_path / "a.csv", rows))
    assert accuracies["hard"].value == accuracies["naive"].value


def test_the_same_file_gives_the_same_numbers(tmp_path):
    path = write(tmp_path / "a.csv", made_rows(5))
    assert estimates(path) == estimates(path)


WRONG = [
    ("correct", "maybe", "'maybe' in column 'correct'", "right, 1, true, yes"),
    ("correct", "", "'' in column 'correct'", "wrong, 0, false, no"),
    ("member", "perhaps", "'perhaps' in column 'member'", "empty if it is unknown"),
    ("score", "high", "'high' in column 'score'", "a finite number"),
    ("score", "inf", "'inf' in column 'score'", "a finite number"),
    ("clean_probability", "1.2", "'1.2' in column 'clean_probability'", "from 0 to 1"),
]


@pytest.mark.parametrize(("column", "value", "problem", "allowed"), WRONG)
def test_a_wrong_value_is_named_with_its_row_and_column(tmp_path, column, value, problem, allowed):
    rows = made_rows(6)
    rows[6][column] = value
    path = write(tmp_path / "a.csv", rows)
    with pytest.raises(InputError) as raised:
        read_items(path, ["score"])
    assert problem in str(raised.value)
    assert raised.value.where == f"{path}:row 7"
    assert allowed in raised.value.allowed
    assert raised.value.hint


def test_a_missing_column_is_named_with_a_similar_one(tmp_path):
    path = write(tmp_path / "a.csv", made_rows(7))
    with pytest.raises(InputError, match=r"no column 'scores'. Did you mean 'score'") as raised:
        read_items(path, ["scores"])
    assert raised.value.where == path
    assert "clean_probability" in raised.value.hint


@pytest.mark.parametrize("side", ["member", "non-member", ""])
def test_fewer_than_ten_rows_of_a_kind_are_refused(tmp_path, side: str):
    rows = made_rows(8)
    same = [row for row in rows if row["member"] == side]
    path = write(tmp_path / "a.csv", [row for row in rows if row not in same[9:]])
    with pytest.raises(InputError, match="9 rows are") as raised:
        read_items(path, ["score"])
    assert raised.value.allowed == "10 or more"
    assert "'member'" in raised.value.hint


def test_an_accuracy_within_noise_of_chance_is_refused(tmp_path):
    rows = made_rows(9)
    for at, row in enumerate(rows):
        row["correct"] = "right" if at % 4 == 0 else "wrong"
    path = write(tmp_path / "a.csv", rows)
    items = read_items(path, ["score"])
    with pytest.raises(InputError, match=r"within noise of chance, 0\.25") as raised:
        check_above_chance(items, 4, path)
    assert raised.value.where == path
    assert "--options" in raised.value.hint
    check_above_chance(read_items(write(tmp_path / "b.csv", made_rows(9)), ["score"]), 4, path)


def test_json_lines_have_values_of_their_own_types(tmp_path):
    rows = made_rows(10)
    path = tmp_path / "a.jsonl"
    sides = {"member": True, "non-member": False, "": None}
    lines = [{**row, "correct": row["correct"] == "right", "member": sides[row["member"]],
              "score": float(row["score"]), "group": None} for row in rows]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    items = read_items(str(path), ["score"])
    assert items.numbers["corrected"] == 200
    assert len(set(items.group.tolist())) == 240
