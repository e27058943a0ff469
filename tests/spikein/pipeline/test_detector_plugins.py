"""A user's own detector in a whole experiment and in `spikein detect`, from a folder outside the
repository: an edit gives new scores, and without one the stored scores are used."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from inject.examples.example import read_examples
from spikein.cli.main import app
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from tests.command_line import invoke
from tests.conftest import make_texts
from tests.detect.evidence_samples import scores_record
from tests.spikein.shared_run import MODELS

DETECTOR = '''
"""The least likely token."""

import helper


def score(example):
    return float(example.statistics["text"].log_probability.min()) * helper.SCALE
'''


@pytest.fixture
def outside(copied_run, monkeypatch) -> Path:
    """A folder of the user's: an experiment, a detector, and a module that it imports."""
    path = copied_run.experiment
    line = "detect: {detectors: [loss, my_detector.py:score]}"
    path.write_text(re.sub("(?m)^detect: .*$", line, path.read_text()))
    (copied_run.root / "my_detector.py").write_text(DETECTOR)
    (copied_run.root / "helper.py").write_text("SCALE = 1.0\n")
    monkeypatch.chdir(copied_run.root)
    return copied_run.root


def spikein_run() -> str:
    """Run the experiment on the models that are stored; return its output."""
    done = invoke("run", "tiny.yaml", *MODELS, code=0)
    return " ".join(done.output.split())


def steps(path: Path) -> dict[str, str]:
    return {step.name: step.digest for step in build_graph(read_experiment(path)).graph.steps}


def changed_steps(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert before.keys() == after.keys()
    return {name.split()[0] for name in before if before[name] != after[name]}


@pytest.mark.slow
def test_a_plugins_source_is_part_of_the_scores_and_of_nothing_before_them(outside):
    first = steps(outside / "tiny.yaml")
    assert changed_steps(first, steps(outside / "tiny.yaml")) == set()
    (outside / "unrelated.py").write_text("SCALE = 3.0\n")
    assert changed_steps(first, steps(outside / "tiny.yaml")) == set()
    (outside / "helper.py").write_text("SCALE = 2.0\n")
    second = steps(outside / "tiny.yaml")
    assert changed_steps(first, second) == {"scores", "results"}
    (outside / "my_detector.py").write_text(DETECTOR.replace("min", "max"))
    assert changed_steps(second, steps(outside / "tiny.yaml")) == {"scores", "results"}


def read_scores(folder: Path) -> dict[str, float]:
    path = folder / "runs" / "tiny" / "latest" / "scores.parquet"
    rows = pq.read_table(path).to_pylist()
    return {
        row["example_id"]: row["score"] for row in rows if row["detector"] == "my_detector.score"
    }


def artifacts(folder: Path) -> set[tuple[str, str]]:
    paths = (path.parent for path in (folder / "store").glob("*/*/manifest.json"))
    return {(path.parent.name, path.name) for path in paths}


@pytest.mark.slow
def test_a_users_detector_runs_in_a_whole_experiment(outside):
    before = artifacts(outside)
    spikein_run()
    first, stored = read_scores(outside), artifacts(outside)
    assert len(first) == 70
    assert all(score < 0 for score in first.values())
    assert not {kind for kind, _ in stored - before} & {"model", "plan", "statistics"}
    (outside / "helper.py").write_text("SCALE = 2.0\n")
    spikein_run()
    assert read_scores(outside) == {name: 2 * score for name, score in first.items()}
    new = {kind for kind, _ in artifacts(outside) - stored}
    assert new == {"scores", "results", "trajectory"}


@pytest.mark.slow
def test_spikein_detect_runs_a_users_detector(outside, tiny_model_path):
    rows = [{"text": text, "label": row % 2} for row, text in enumerate(make_texts(24, words=9))]
    (outside / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def scores() -> list[float]:
        result = CliRunner().invoke(
            app,
            [
                *("detect", "--model", str(tiny_model_path), "--examples", "rows.jsonl"),
                *("--detectors", "loss,my_detector.py:score", "--out", "scores.parquet"),
            ],
        )
        assert result.exit_code == 0, result.output
        assert "my_detector.score" in result.output
        table = pq.read_table("scores.parquet").to_pylist()
        return [row["score"] for row in table if row["detector"] == "my_detector.score"]

    first = scores()
    digest = scores_record(Path("scores.parquet"))["plugins"]
    assert len(first) == 24
    assert scores() == first
    (outside / "helper.py").write_text("SCALE = 3.0\n")
    assert scores() == [3 * score for score in first]
    assert scores_record(Path("scores.parquet"))["plugins"] != digest


FAILING = """
def one_row(example):
    if example.text == BAD:
        raise ValueError("no such word")
    return float(example.statistics["text"].log_probability.min())


def every_row(example):
    raise RuntimeError("never works")
"""


@pytest.mark.slow
def test_a_failing_detector_loses_its_rows_and_does_not_stop_the_run(outside, shared_run):
    """Read from the disk: scores with reasons, the page, and the command's output."""
    path = outside / "tiny.yaml"
    pool = read_examples(shared_run.stored(shared_run.node.examples))
    bad = next(row for row in pool if row.split == "test")
    (outside / "my_detector.py").write_text(FAILING.replace("BAD", repr(bad.text)))
    names = "loss, my_detector.py:one_row, my_detector.py:every_row"
    path.write_text(path.read_text().replace("loss, my_detector.py:score", names))
    output = spikein_run()
    scores = pq.read_table("runs/tiny/latest/scores.parquet").to_pylist()
    missing = {
        name: {row["example_id"]: row["reason"] for row in scores if row["detector"] == name}
        for name in ("loss", "my_detector.one_row", "my_detector.every_row")
    }
    assert set(missing["loss"].values()) == {None}
    assert "blind" in {row["detector"] for row in scores}, "the control, which was not requested"
    failed = {name: why for name, why in missing["my_detector.one_row"].items() if why}
    assert failed.keys() == {bad.example_id}
    assert "ValueError: no such word" in failed[bad.example_id]
    assert all("RuntimeError: never" in why for why in missing["my_detector.every_row"].values())
    page = Path("runs/tiny/latest/report.html").read_text()
    for text in (output, " ".join(page.split())):
        assert "my_detector.one_row: NO SCORE of 1 of 70 rows" in text
        assert "ValueError: no such word" in text
        assert "my_detector.every_row: NO SCORE of ANY of the 70 rows" in text
        assert "RuntimeError: never works" in text
