"""Output of `spikein detect`: tables for people, one JSON object for programs."""

import json

import numpy as np
import pytest

from spikein.estimates.step_times import START_SECONDS
from tests.command_line import invoke
from tests.conftest import make_texts


@pytest.fixture
def command(tmp_path, tiny_model_path):
    def run(examples, *more):
        words = ["--model", tiny_model_path, "--examples", examples, "--detectors", "loss"]
        words += ["--out", tmp_path / "s.jsonl", *more]
        return invoke("detect", *words, code=0)

    return run


def labelled(count, words=9):
    return [
        {"text": text, "label": at % 2} for at, text in enumerate(make_texts(count, words=words))
    ]


def test_unscored_rows_are_also_counted_without_labels(command, write):
    rows = write([{"text": text} for text in [*make_texts(5, words=9), "", "a", ""]])
    done = command(rows)
    line = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["loss"])
    assert line.split()[2:4] == ["5", "3"]
    assert "2 empty text; 1 one token" in line
    (entry,) = json.loads(command(rows, "--json").stdout)["scores"]
    assert (entry["scored"], entry["unscored"]) == (5, 3)
    assert entry["reasons"]["empty text"] == 2


def test_json_is_the_only_output_and_agrees_with_the_file(command, write, tmp_path):
    done = command(write(labelled(24)), "--json", "--detectors", "all")
    report = json.loads(done.stdout)
    assert (report["rows"], report["members"], report["nonmembers"]) == (24, 12, 12)
    assert report["out"] == str(tmp_path / "s.jsonl")
    assert any("reference=PATH" in note for note in report["notes"])
    scores = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    entry = next(row for row in report["scores"] if row["detector"] == "loss")
    own = np.array([row["score"] for row in scores if row["detector"] == "loss"])
    members, nonmembers = own[1::2], own[::2]
    auc = np.mean(members[:, None] > nonmembers[None, :])
    assert entry["auc"]["value"] == pytest.approx(auc)
    assert entry["tpr"]["0.1"]["reason"] == "fewer than 100 non-members"
    assert entry["tpr"]["0.1"]["value"] is None


def test_tprs_are_printed_only_with_enough_non_members(command, write):
    table = command(write(labelled(204, words=6))).stdout
    assert "TPR at 10% FPR" in table
    assert "TPR at 5% FPR" not in table


def test_a_dry_run_lists_steps_and_scores_nothing(command, write, tmp_path, monkeypatch):
    """A plan has times from the rate of this machine, and finds stored steps."""
    from spikein.estimates.step_times import TrainingRate

    rates = []

    def rate(*arguments):
        rates.append(arguments)
        return TrainingRate(1e6, "cpu", steps=3, whole=True)

    monkeypatch.setattr("spikein.estimates.step_times.training_rate", rate)
    rows, store = write(labelled(12)), ("--store", tmp_path / "store", "--limit", "8")
    first = json.loads(command(rows, *store, "--dry-run", "--json").stdout)
    assert (first["rows"], first["members"], first["detectors"]) == (8, 4, ["loss"])
    assert "Only the first 8 rows were read" in first["notes"][0]
    steps = {step["kind"]: step for step in first["steps"]}
    assert {*steps} == {"examples", "statistics", "scores"}
    assert all(step["to_do"] for step in first["steps"])
    sizes = sum(-(-len(row["text"].encode()) // 4) for row in labelled(12)[:8])
    assert steps["statistics"]["tokens"] == sizes
    assert steps["statistics"]["seconds"] > START_SECONDS
    assert not (tmp_path / "s.jsonl").exists()
    scored = json.loads(command(rows, *store, "--json").stdout)
    assert (scored["rows"], scored["limited"]) == (8, True)
    again = command(rows, *store, "--dry-run").stdout
    assert "8 rows (4 members), 1 detector; 0 of 3 steps to do. Nothing was scored." in again
    assert len(rates) == 1
