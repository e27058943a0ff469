"""What `spikein detect` prints: tables for people, one JSON object for programs."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from analysis.auc_table import auc_table
from spikein.cli.main import app
from tests.analysis.oracles import tpr_at_fpr
from tests.analysis.test_auc_table import FAST, scores_table
from tests.conftest import make_texts


@pytest.fixture
def command(tmp_path, tiny_model_path):
    def run(examples, *more):
        words = ["--model", tiny_model_path, "--examples", examples, "--detectors", "loss"]
        words += ["--out", tmp_path / "s.jsonl", *more]
        done = CliRunner().invoke(app, ["detect", *map(str, words)])
        assert done.exit_code == 0, done.output
        return done

    return run


def labelled(count, words=9):
    return [
        {"text": text, "label": at % 2} for at, text in enumerate(make_texts(count, words=words))
    ]


def test_unscored_rows_are_counted_without_labels_too(command, write):
    rows = write([{"text": text} for text in [*make_texts(5, words=9), "", "a", ""]])
    done = command(rows)
    line = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["loss"])
    assert line.split()[2:4] == ["5", "3"]
    assert "2 empty text; 1 one token" in line
    (entry,) = json.loads(command(rows, "--json").stdout)["scores"]
    assert (entry["scored"], entry["unscored"]) == (5, 3)
    assert entry["reasons"]["empty text"] == 2


def test_json_is_all_that_is_printed_and_agrees_with_the_file(command, write, tmp_path):
    done = command(write(labelled(24)), "--json", "--detectors", "all")
    found = json.loads(done.stdout)
    assert (found["rows"], found["members"], found["nonmembers"]) == (24, 12, 12)
    assert found["out"] == str(tmp_path / "s.jsonl")
    assert any("--reference" in note for note in found["notes"])
    scores = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    entry = next(one for one in found["scores"] if one["detector"] == "loss")
    own = np.array([one["score"] for one in scores if one["detector"] == "loss"])
    members, nonmembers = own[1::2], own[::2]
    auc = np.mean(members[:, None] > nonmembers[None, :])
    assert entry["auc"]["value"] == pytest.approx(auc)
    absent = dict.fromkeys(("value", "low", "high", "caution"))
    assert entry["tpr"]["0.1"] == {**absent, "reason": "fewer than 100 non-members"}


def test_tprs_stand_in_the_table_only_where_enough_non_members_stand_behind_them():
    random = np.random.default_rng(0)
    values = random.normal(size=450) + np.repeat([1.0, 0.0], [200, 250])
    labels = [1] * 200 + [0] * 250
    (row,) = auc_table(scores_table({"loss": values}), labels, settings=FAST)
    for rate in (0.05, 0.1):
        found = row.tpr[rate]
        assert found.value == pytest.approx(tpr_at_fpr(values[:200], values[200:], rate))
        assert found.low < found.value < found.high
    assert row.tpr[0.01].reason == "fewer than 1000 non-members"
    assert row.tpr[0.001].reason == "fewer than 10000 non-members"
    assert math.isnan(row.tpr[0.01].value)


def test_the_table_shows_tprs(command, write):
    done = command(write(labelled(204, words=6)))
    assert "TPR at 10% FPR" in done.stdout
    assert "TPR at 5% FPR" not in done.stdout


def test_blind_stands_beside_the_number_of_a_benchmark(command, data_folder, tmp_path):
    source = data_folder / "detect" / "wikimia" / "WikiMIA_length32.jsonl"
    lines = source.read_text(encoding="utf-8").splitlines()[:40]
    (tmp_path / "32.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert "blind" in command(tmp_path / "32.jsonl", "--benchmark", "wikimia-32").output
