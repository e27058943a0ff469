"""`bundle --hold-out`, `validate --bench` and `leaderboard` on a trained run, end to end."""

import json
from pathlib import Path

import pytest

import spikein
from tests.command_line import invoke
from tests.detect.wrong_detectors import SOURCE
from tests.spikein.tiny import write_tiny

SECRET = 2**60 + 12_345


def build(root: Path, files: Path) -> Path:
    """Build the benchmark from nothing, with the fewest models, rows and tokens."""
    spikein.run(
        "bench",
        overrides=[
            f"seeds=[0, {SECRET}]",
            "sweep=null",
            "copies={fixed: 2}",
            f"model={{shape: {files}/shape.yaml, tokenizer: {{vocab_size: 300}}}}",
            f"corpus={{tokens: 20_000, sources: [{{kind: files, path: {files}/texts.jsonl}}]}}",
            "base={tokens: 4_000, lr: 1.0e-2}",
            "contaminants.0.members=24",
            "contaminants.0.nonmembers=24",
            "train={lr: 1.0e-2, context: 64, batch_tokens: 1024}",
            "twins.shadows=0",
            "detect.detectors=[loss, reference, blind]",
        ],
        store=root / "store",
        runs=root / "runs",
        progress=False,
    )
    return root


def pack(root: Path) -> str:
    folders = ("--out", root / "bench.bundle", "--labels-out", root / "bench.labels")
    done = invoke("bundle", root / "runs/bench", "--hold-out", SECRET, *folders, code=0)
    assert "keep this folder and the seed secret" in done.output
    return json.loads((root / "bench.bundle/bundle.json").read_text())["content"]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("built")
    write_tiny(root)
    pack(build(root, root))
    (root / "wrong.py").write_text(SOURCE)
    return root


@pytest.mark.slow
def test_two_builds_of_the_benchmark_are_identical(built, tmp_path):
    header = json.loads((built / "bench.bundle/bundle.json").read_text())
    assert [model["model"] for model in header["models"]] == ["contaminated", "base", "twin"]
    (hidden,) = header["unlabelled"]
    assert set(hidden["inputs"]) == {"view-text", "reference"}
    assert pack(build(tmp_path, built)) == header["content"]


@pytest.mark.slow
def test_validate_bench_and_leaderboard(built, monkeypatch):
    monkeypatch.chdir(built)
    done = invoke("validate", "wrong.py:right", "wrong.py:turned", "--bench", code=0)
    assert "Submission: submission-wrong.right" in done.output
    invoke("validate", "loss", "bench.bundle", "--bench", code=0)
    loss = json.loads(Path("submission-loss/submission.json").read_text())
    assert (loss["author"], loss["code"]) == ("", "built in")
    arguments = ("leaderboard", ".", "--labels", "bench.labels", "--out", "board.html")
    assert "Page: board.html" in invoke(*arguments, code=0).output
    rows = json.loads(invoke(*arguments[:-2], "--json", code=0).output)["findings"]
    ranked = {row["detector"]: row for row in rows if row["kind"] == "rank"}
    assert sorted(ranked) == ["loss", "wrong.right", "wrong.turned"]
    assert {row["models"] for row in ranked.values()} == {"held-out"}
    right, turned = (ranked[f"wrong.{name}"]["value"] for name in ("right", "turned"))
    assert right + turned == pytest.approx(1)


def test_validate_bench_without_a_benchmark_explains_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SOURCE)
    output = " ".join(invoke("validate", "mine.py:right", "--bench", code=2).output.split())
    assert "bench.bundle: no such folder" in output
    assert "make bench-bundle" in output


def test_a_seed_is_held_out_only_together_with_a_folder_for_its_labels(tmp_path):
    output = invoke("bundle", "x", "--out", tmp_path / "o", "--hold-out", "5", code=2).output
    assert "together with a folder for its labels" in output
