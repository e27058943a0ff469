"""The pages of docs/results: their numbers match the run's metrics, in hand-written rows."""

import csv
import json
from pathlib import Path

import pyarrow as pa

from analysis.findings import question_table, write_findings
from scripts.study_pages import page_with, shelved
from scripts.study_results import written

ROW = {
    "sweep.copies": "poisson=2",
    "model": "contaminated",
    "dataset": "all",
    "detector": "min_k",
    "setting": "k=0.2",
    "selection": "default",
    "copies": "all",
    "variant": "all",
    "metric": "auc",
    "value": 0.776,
    "low": 0.752,
    "high": 0.798,
    "n_members": 614,
    "n_nonmembers": 1350,
    "n_seeds": 3,
}


EFFECT = {
    "sweep.copies": "",
    "kind": "contrast",
    "factor": "copies",
    "dataset": "all",
    "detector": "min_k",
    "level": "levels=1-2",
    "versus": "poisson=2",
    "term": "difference",
    "value": 0.035,
    "low": -0.014,
    "high": 0.056,
    "n_members": 600,
    "n_seeds": 3,
}


def run_folder(folder: Path, **further: pa.Table) -> Path:
    rows = [
        ROW,
        {**ROW, "detector": "surp", "value": 0.61, "low": float("nan"), "high": float("nan")},
        {**ROW, "copies": "1", "value": 0.66, "low": 0.61, "high": 0.70, "n_members": 178},
        {**ROW, "copies": "2", "value": float("nan"), "n_members": 0},
        {**ROW, "selection": "tuned", "value": 0.99},
        {**ROW, "model": "twin", "value": 0.98},
        {**ROW, "metric": "tpr@0.05", "value": 0.25, "low": 0.20, "high": 0.31},
        {**ROW, "dataset": "imdb", "value": 0.82, "low": 0.67, "high": 0.91},
    ]
    metrics = pa.Table.from_pylist(rows)
    effects = [
        EFFECT,
        {**EFFECT, "detector": "loss", "value": -0.05, "low": float("nan"), "high": float("nan")},
        {**EFFECT, "dataset": "imdb", "value": 0.77},
        {**EFFECT, "kind": "response", "term": "slope", "level": "", "versus": "", "value": 0.5},
        {**EFFECT, "kind": "response", "term": "reach", "level": "", "versus": "", "value": 3.3},
        {**EFFECT, "kind": "response", "term": "slope", "factor": "length", "value": 0.66},
    ]
    factors = pa.Table.from_pylist(effects)
    write_findings(folder, {"metrics": metrics, "factors": factors, **further})
    record = {"id": "abc", "name": "study", "finished": "2026-01-02T03:04:05", "version": "1"}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "figures").mkdir()
    (folder / "figures" / "copies.png").write_bytes(b"png")
    return folder


def test_numbers_have_intervals_and_counts(tmp_path: Path):
    run = run_folder(tmp_path)
    page = written(run, into=tmp_path / "out", figures=["copies"], by_dataset=["min_k"])
    lines = page.splitlines()
    assert "| poisson=2 | 205 / 450 | 3 | 0.78 [0.75, 0.80] | 0.61 (no interval) |" in lines
    assert "| poisson=2 | 1 | 59 / 450 | 3 | 0.66 [0.61, 0.70] |" in lines
    assert "| poisson=2 | 2 | 0 / 450 | 3 | – |" in lines
    assert "| poisson=2 | 205 / 450 | 3 | 0.78 [0.75, 0.80] | 0.82 [0.67, 0.91] |" in lines
    assert "| poisson=2 | 205 / 450 | 3 | 0.25 [0.20, 0.31] |" in lines
    difference = "| copies: levels=1-2 less poisson=2 | 200 | 3 |"
    assert f"{difference} +0.04 [-0.01, +0.06] | -0.05 (no interval) |" in lines
    assert "| copies | 200 | 3 | +0.50 [-0.01, +0.06] |" in lines
    assert not any(absent in page for absent in ("0.77", "3.3", "0.66 [-"))
    assert "0.99" not in page
    assert "0.98" not in page
    assert (tmp_path / "out" / "images" / "study-copies.png").read_bytes() == b"png"


def test_manual_text_is_kept():
    page = page_with("# Study\n\nRead by hand.\n", "one")
    again = page_with(page + "\nAnd after it.\n", "two")
    assert "Read by hand." in again
    assert "And after it." in again
    assert "two" in again
    assert "\none\n" not in again


def test_table_numbers_are_in_the_file_and_one_table_is_kept(tmp_path: Path):
    content = written(run_folder(tmp_path), into=tmp_path, figures=["copies"], by_dataset=[])
    file = tmp_path / "results-study.csv"
    page = shelved(content, file=file, keep={"AUC by copies"})
    assert page.count("## ") == 1
    assert "| poisson=2 | 1 | 59 / 450 | 3 | 0.66 [0.61, 0.70] |" in page.splitlines()
    assert "[results-study.csv](../data/results-study.csv)" in page
    assert "Pictures: [copies](images/study-copies.png)." in page
    with file.open(encoding="utf-8", newline="") as opened:
        head, *rows = csv.reader(opened)
    assert head == ["table", "row", "column", "value", "low", "high"]
    assert ["AUC by copies", "poisson=2; 1", "min_k", "0.66", "0.61", "0.70"] in rows
    arms, difference = "AUC by arm and detector", "Differences of AUC between arms"
    assert [arms, "poisson=2", "surp", "0.61", "", ""] in rows
    assert [arms, "poisson=2", "members / non-members per seed", "205 / 450", "", ""] in rows
    named = "copies: levels=1-2 less poisson=2"
    assert [difference, named, "min_k", "0.04", "-0.01", "0.06"] in rows
    captions = [row[3] for row in rows if row[2] == "caption"]
    assert "Default settings, `test` rows, all datasets, 95 % intervals." in captions


def test_errors_of_corrected_scores_are_in_points_by_detector_and_known_items(tmp_path: Path):
    place = {"sweep.copies": "", "dataset": "imdb", "copies": "4", "outcome": "contaminated",
             "contaminated_share": 0.3, "calibration_items": 20, "n_members": 40,
             "n_nonmembers": 90}  # fmt: skip
    free = [{**place, "estimator": name, "detector": None, "value": 0.12, "low": 0.1, "high": 0.14,
             "rmse": 0.12, "target": 0.4} for name in ("naive", "imputed", "oracle")]  # fmt: skip
    by_scores = [
        {**place, "estimator": name, "detector": detector, "value": error, "low": error - 0.02,
         "high": error + 0.02, "rmse": abs(error), "target": 0.4}
        for detector, error in (("loss", 0.05), ("min_k", -0.03), ("lira", 0.001))
        for name in ("weighted", "hard", "largest_gain", "combined")
    ]  # fmt: skip
    smaller = [{**row, "calibration_items": 10} for row in free + by_scores]
    other = [{**row, "contaminated_share": 0.5, "value": 0.9} for row in free + by_scores]
    above = {**free[0], "copies": "all", "estimator": "above_chance", "outcome": None}
    table = pa.Table.from_pylist([above, *smaller, *free, *by_scores, *other])
    run = run_folder(tmp_path, correction=table)
    content = written(run, into=tmp_path, figures=[], by_dataset=[])
    naive, near = "+12.0 [+10.0, +14.0]", "-3.0 [-5.0, -1.0]"
    for size in (10, 20):
        line = f"|  | imdb | 4 | {size} | min_k | 40 / 90 | {naive} | {naive} | {near} |"
        assert [each.startswith(line) for each in content.splitlines()].count(True) == 1
    assert "|  | imdb | 0.400 | +0.120 [+0.100, +0.140] |" in content.splitlines()
    assert "lira" not in content
    assert "90.0" not in content


def test_a_run_without_corrected_scores_has_no_such_table(tmp_path: Path):
    run = run_folder(tmp_path, correction=pa.table({"sweep.copies": [], "outcome": []}))
    assert "corrected" not in written(run, into=tmp_path, figures=[], by_dataset=[])


def test_verdicts_of_claims_have_interval_margin_and_rows_per_seed(tmp_path: Path):
    claim = {"claim": "size", "kind": "contrast", "comparison": "4M − 1M", "detector": "min_k",
             "measure": "auc", "verdict": "moves AUC", "value": 0.0512, "low": 0.021, "high": 0.08,
             "margin": 0.03, "n_seeds": 8, "members_per_seed": 90,
             "nonmembers_per_seed": 450}  # fmt: skip
    spread = {**claim, "claim": "seeds", "kind": "spread", "verdict": "not answered"}
    run = run_folder(tmp_path, claims=question_table("claims", ["sweep.copies"], [claim, spread]))
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "claims": "0123456789abcdef"}))
    lines = written(run, into=tmp_path, figures=[], by_dataset=[]).splitlines()
    assert lines[0].endswith("spikein 1, claims `0123456789ab`.")
    numbers = "+0.051 [+0.021, +0.080] | 0.03 | moves AUC | 8 | 90 / 450 |"
    assert f"| size | `min_k` | 4M − 1M, auc | {numbers}" in lines
    assert any(line.startswith("| seeds |") and " 0.051 [0.021, 0.080] |" in line for line in lines)
