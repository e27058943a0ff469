"""Done when 3: a detector of the user's own, through a whole experiment and `spikein detect`, from
a folder outside the repository; edited, it gives new scores, and unchanged the stored ones."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from inject.examples.datasets import fictional
from inject.examples.example import read_examples
from spikein.cli.main import app
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from tests.conftest import make_texts
from tests.detect.evidence_samples import scores_record
from tests.spikein.tiny import write_tiny

DETECTOR = '''
"""The least likely token."""

import helper


def score(example):
    return float(example.statistics["text"].log_probability.min()) * helper.SCALE
'''


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder of the user's: an experiment, a detector, and a module beside it."""
    write_tiny(tmp_path)
    text = (tmp_path / "tiny.yaml").read_text()
    lines = [
        "detect: {detectors: [loss, my_detector.py:score]}" if line.startswith("detect:") else line
        for line in text.splitlines()
    ]
    (tmp_path / "tiny.yaml").write_text("\n".join(lines) + "\n")
    (tmp_path / "my_detector.py").write_text(DETECTOR)
    (tmp_path / "helper.py").write_text("SCALE = 1.0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def steps(path: Path) -> dict[str, str]:
    return {step.name: step.digest for step in build_graph(read_experiment(path)).graph.steps}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert before.keys() == after.keys()
    return {name.split()[0] for name in before if before[name] != after[name]}


def test_a_plugins_source_is_part_of_the_scores_and_of_nothing_before_them(outside):
    first = steps(outside / "tiny.yaml")
    assert changed(first, steps(outside / "tiny.yaml")) == set()
    (outside / "unrelated.py").write_text("SCALE = 3.0\n")
    assert changed(first, steps(outside / "tiny.yaml")) == set()
    (outside / "helper.py").write_text("SCALE = 2.0\n")
    second = steps(outside / "tiny.yaml")
    assert changed(first, second) == {"scores", "results", "figures"}
    (outside / "my_detector.py").write_text(DETECTOR.replace("min", "max"))
    assert changed(second, steps(outside / "tiny.yaml")) == {"scores", "results", "figures"}


def test_what_is_wrong_with_a_plugin_is_said_with_its_place_in_the_file(outside):
    (outside / "my_detector.py").write_text("def scor(example):\n    return 1.0\n")
    found = CliRunner().invoke(app, ["check", "tiny.yaml"])
    assert found.exit_code == 2
    said = " ".join(found.output.split())
    assert "tiny.yaml" in said
    assert "detect.detectors: my_detector.py:score: the file has no 'score'" in said
    assert "Did you mean 'scor'?" in said


def scored(folder: Path) -> dict[str, float]:
    path = folder / "runs" / "tiny" / "latest" / "scores.parquet"
    rows = pq.read_table(path).to_pylist()
    return {
        row["example_id"]: row["score"] for row in rows if row["detector"] == "my_detector.score"
    }


def artifacts(folder: Path) -> dict[str, int]:
    return {
        f"{path.parent.parent.name}/{path.parent.name}": path.stat().st_mtime_ns
        for path in (folder / "store").glob("*/*/manifest.json")
    }


@pytest.mark.slow
def test_a_whole_experiment_with_a_detector_of_the_users(outside):
    def spikein(*arguments):
        found = CliRunner().invoke(app, ["run", "tiny.yaml", "--store", "store", *arguments])
        assert found.exit_code == 0, found.output

    spikein()
    first, stored = scored(outside), artifacts(outside)
    assert len(first) == 48
    assert all(score < 0 for score in first.values())
    spikein()
    assert artifacts(outside) == stored
    (outside / "helper.py").write_text("SCALE = 2.0\n")
    spikein()
    second = scored(outside)
    assert second == {name: 2 * score for name, score in first.items()}
    new = artifacts(outside).keys() - stored.keys()
    assert {name.split("/")[0] for name in new} == {"scores", "results", "figures"}


@pytest.mark.slow
def test_spikein_detect_with_a_detector_of_the_users(outside, tiny_model_path):
    rows = [{"text": text, "label": row % 2} for row, text in enumerate(make_texts(24, words=9))]
    (outside / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def scores() -> list[float]:
        found = CliRunner().invoke(
            app,
            [
                *("detect", "--model", str(tiny_model_path), "--examples", "rows.jsonl"),
                *("--detectors", "loss,my_detector.py:score", "--out", "scores.parquet"),
            ],
        )
        assert found.exit_code == 0, found.output
        assert "my_detector.score" in found.output
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
def test_a_detector_that_fails_costs_its_rows_and_not_the_run(outside):
    """Read from the disk: scores with reasons, the page, and what the command says at its end."""
    path = outside / "tiny.yaml"
    (outside / "my_detector.py").write_text(FAILING.replace("BAD", "None"))
    names = "loss, my_detector.py:one_row, my_detector.py:every_row"
    path.write_text(path.read_text().replace("loss, my_detector.py:score", names))
    examples = build_graph(read_experiment(path)).nodes[0].examples
    first = CliRunner().invoke(app, ["run", "tiny.yaml", "--store", "store"])
    assert first.exit_code == 0, first.output
    (folder,) = (outside / "store").glob(f"examples/*{examples.digest[:12]}")
    rows = pq.read_table(folder / "examples.parquet").to_pylist()
    bad = next(row for row in rows if row["split"] == "test")
    (outside / "my_detector.py").write_text(FAILING.replace("BAD", repr(bad["text"])))
    found = CliRunner().invoke(app, ["run", "tiny.yaml", "--store", "store"])
    assert found.exit_code == 0, found.output
    scores = pq.read_table("runs/tiny/latest/scores.parquet").to_pylist()
    missing = {
        name: {row["example_id"]: row["reason"] for row in scores if row["detector"] == name}
        for name in ("loss", "my_detector.one_row", "my_detector.every_row")
    }
    assert set(missing["loss"].values()) == {None}
    assert "blind" in {row["detector"] for row in scores}, "the control, which nobody asked for"
    assert {name for name, why in missing["my_detector.one_row"].items() if why} == {
        bad["example_id"]
    }
    assert "ValueError: no such word" in missing["my_detector.one_row"][bad["example_id"]]
    assert all("RuntimeError: never" in why for why in missing["my_detector.every_row"].values())
    page = Path("runs/tiny/latest/report.html").read_text()
    for said in (" ".join(found.output.split()), " ".join(page.split())):
        assert "my_detector.one_row: NO SCORE of 1 of 48 rows" in said
        assert "ValueError: no such word" in said
        assert "my_detector.every_row: NO SCORE of ANY of the 48 rows" in said
        assert "RuntimeError: never works" in said


@pytest.mark.slow
def test_a_detector_that_quotes_a_protected_text_reveals_no_word_of_it(outside, monkeypatch):
    """Whatever is stored as scores, lies in the run's folder, or is said at the command's end."""
    monkeypatch.setattr(fictional, "DATASET", replace(fictional.DATASET, protected=True))
    (outside / "my_detector.py").write_text(
        "def score(example):\n    raise ValueError(example.text)\n"
    )
    found = CliRunner().invoke(app, ["run", "tiny.yaml", "--store", "store"])
    assert found.exit_code == 0, found.output
    (examples,) = (outside / "store").glob("examples/*/examples.parquet")
    rows = read_examples(examples.parent)
    words = {word for row in rows for word in row.fields["masked"] if len(word) > 6}
    assert words
    files = [
        path
        for path in (*Path("runs/tiny/latest").rglob("*"), *Path("store/scores").rglob("*"))
        if path.is_file() and "artifacts" not in path.relative_to(".").parts
    ]
    assert {"scores.parquet", "report.html", "run.json"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        if path.suffix == ".parquet":
            metadata = pq.read_schema(path).metadata
            content = f"{pq.read_table(path).to_pylist()} {metadata}".encode()
        assert not [word for word in words if word.encode() in content], path
        assert not [row.text for row in rows if row.text.encode() in content], path
    assert not [word for word in words if word in found.output]
    scores = pq.read_table("runs/tiny/latest/scores.parquet").to_pylist()
    reasons = {row["reason"] for row in scores if row["detector"] == "my_detector.score"}
    assert all("my_detector.py:2 with ValueError" in reason for reason in reasons)
