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


def test_a_missing_file_and_a_wrong_value_end_with_2(tmp_path):
    assert "no such file" in invoke("correct", tmp_path / "none.csv", code=2).output
    rows = made_rows(2)
    rows[0]["correct"] = "ja"
    output = invoke("correct", write(tmp_path / "a.csv", rows), code=2).output
    assert "a.csv:row 1: 'ja' in column 'correct'. Allowed: right, 1, true, yes" in output
