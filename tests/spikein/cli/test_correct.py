"""`spikein correct`: a file in, six estimates with intervals out, and what it refuses."""

import json

import pytest

from tests.analysis.correction.test_user_file import made_rows, write
from tests.command_line import invoke


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("correct") / "answers.csv", made_rows(0))


def test_six_estimators_are_printed_with_intervals_and_counts(answers):
    output = invoke("correct", answers, "--options", 2, code=0).output
    for name in ("naive", "weighted", "hard", "largest gain", "imputed", "combined"):
        assert f"{name} " in output
    assert "95% percentile bootstrap, 2,000 replicates" in output
    assert "200 corrected, 20 known members, 20 known non-members, 0 left out" in output
    assert "Not compared with chance" not in output


def test_json_has_every_number(answers):
    result = invoke("correct", answers, "--json", code=0)
    printed = json.loads(result.stdout)
    assert printed["corrected"] == 200
    by_name = {entry["estimator"]: entry for entry in printed["estimates"]}
    assert len(by_name) == 6
    assert all(entry["accuracy"]["low"] <= entry["accuracy"]["value"] <= entry["accuracy"]["high"]
               for entry in by_name.values())  # fmt: skip
    assert by_name["weighted"]["scores"] == "score"
    assert by_name["naive"]["scores"] is None


def test_without_options_it_reports_that_chance_is_not_compared(answers):
    assert "Not compared with chance: give --options N." in invoke("correct", answers).output


def test_several_columns_of_scores_are_corrected_by_one_after_the_other(tmp_path):
    rows = [{**row, "zlib": row["score"]} for row in made_rows(1)]
    path = write(tmp_path / "a.csv", rows, ("correct", "member", "score", "zlib"))
    printed = json.loads(invoke("correct", path, "--scores", "score,zlib", "--json").stdout)
    values = {(entry["scores"], entry["estimator"]): entry["accuracy"]["value"]
              for entry in printed["estimates"]}  # fmt: skip
    assert values["score", "hard"] == values["zlib", "hard"]
    assert len(values) == 10


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scores", "perplexity"), "there is no column 'perplexity'"),
        (("--options", 1), "Invalid value for '--options'"),
    ],
)
def test_a_wrong_option_is_refused(answers, words, message):
    assert message in " ".join(invoke("correct", answers, *words, code=2).output.split())


def test_columns_that_are_not_used_are_listed(tmp_path):
    rows = [{**row, "zlib": "1", "ID": "a"} for row in made_rows(3)]
    path = write(tmp_path / "a.csv", rows, ("ID", "correct", "member", "score", "zlib"))
    assert "Columns not used: ID, zlib." in invoke("correct", path, code=0).output
    printed = json.loads(invoke("correct", path, "--scores", "score,ZLIB", "--json").stdout)
    assert printed["unused_columns"] == ["ID"]


def test_few_known_members_and_accuracy_at_chance_end_with_2_before_any_estimate(tmp_path):
    rows = made_rows(4)
    members = [row for row in rows if row["member"] == "member"]
    few = write(tmp_path / "few.csv", [row for row in rows if row not in members[9:]])
    output = invoke("correct", few, code=2).output
    assert "few.csv: 9 rows are known members. Allowed: 10 or more." in output
    guessed = [
        {**row, "correct": "wrong" if at % 4 else "right"} for at, row in enumerate(made_rows(5))
    ]
    path = write(tmp_path / "chance.csv", guessed)
    output = invoke("correct", path, "--options", 4, code=2).output
    assert "is within noise of chance, 0.25" in output
    assert "Intervals" not in output


def test_a_missing_file_and_a_wrong_value_end_with_2(tmp_path):
    assert "no such file" in invoke("correct", tmp_path / "none.csv", code=2).output
    rows = made_rows(2)
    rows[0]["correct"] = "ja"
    output = invoke("correct", write(tmp_path / "a.csv", rows), code=2).output
    assert "a.csv:row 1: 'ja' in column 'correct'. Allowed: right, 1, true, yes" in output
