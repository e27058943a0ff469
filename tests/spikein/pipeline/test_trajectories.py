"""Models kept along the way, scored and compared, from an experiment file to its page."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from analysis.findings import read_table
from detect.policy import ScoringPolicy
from detect.scores.table import read_scores
from inject.examples.example import read_examples
from inject.stream.exposures import exposure_until, read_exposures
from spikein.config.load import read_experiment
from tests.spikein.tiny import run, write_tiny
from train.models.pretrained import load_causal_model

pytestmark = pytest.mark.slow

ALONG = "train.checkpoints={powers_of_two: 4, every: 13, fractions: [0.5]}"
STEPS = (1, 2, 4, 13, 20, 26, 39)
TOTAL = 40
"""40,000 tokens in windows of 64, 16 a step."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("along")
    write_tiny(folder)
    run(folder, ALONG, "name=along")
    return folder


def trained(lab: Path) -> Path:
    [path] = [path.parent for path in (lab / "store" / "model").glob("*/step-1")]
    return path


def test_the_models_are_there_whole(lab: Path) -> None:
    model = trained(lab)
    assert {path.name for path in model.glob("step-*")} == {f"step-{step}" for step in STEPS}
    weights = [load_causal_model(str(model / f"step-{step}")).state_dict() for step in STEPS]
    for earlier, later in itertools.pairwise(weights):
        assert any((earlier[name] != later[name]).any() for name in earlier)
    for step in STEPS:
        assert (model / f"step-{step}" / "tokenizer.json").is_file()
    assert not list((lab / "store" / ".unfinished").glob("model-*"))


def test_scores_under_a_checkpoint_are_those_of_its_weights(lab: Path) -> None:
    from detect.engine.forward_pass import token_statistics
    from detect.engine.target import load_target

    [examples] = (lab / "store" / "examples").glob("*-????????????")
    [scores] = (lab / "store" / "scores").glob("*-step-13-*")
    rows = read_scores(scores).to_pylist()
    loss = [row["score"] for row in rows if row["detector"] == "loss"]
    target = load_target(str(trained(lab) / "step-13"))
    texts = [row.text for row in read_examples(examples)]
    statistics = token_statistics(target, texts, ScoringPolicy())
    expected = [float(np.mean(one.log_probability)) for one in statistics]
    np.testing.assert_allclose(loss, expected, atol=1e-4)
    assert "blind" not in {row["detector"] for row in rows}


def test_the_tables_hold_what_was_seen_by_each_step(lab: Path) -> None:
    folder = lab / "runs" / "along" / "latest"
    progress = read_table(folder, "trajectory").to_pylist()
    assert {row["step"] for row in progress} <= {0, *STEPS, TOTAL}
    exposures = read_exposures(trained(lab))
    [examples] = (lab / "store" / "examples").glob("*-????????????")
    split = {row.example_id: row for row in read_examples(examples)}
    members = [name for name, row in split.items() if row.side == "member"]
    tested = [name for name in members if split[name].split == "test"]
    for step in (20, 26, TOTAL):
        seen = exposure_until(exposures, step)
        [row] = [
            row for row in progress
            if row["step"] == step and row["copies"] == "all" and row["dataset"] == "all"
            and (row["detector"], row["selection"]) == ("loss", "default")
        ]  # fmt: skip
        assert row["n_members"] == sum(seen[name].copies > 0 for name in tested if name in seen)
        assert row["tokens"] == min(step * 1024, 40_000 // 64 * 64)
    [start] = [
        row for row in progress
        if row["step"] == 0 and row["copies"] == "0" and row["dataset"] == "all"
        and (row["detector"], row["selection"]) == ("loss", "default")
    ]  # fmt: skip
    assert start["n_members"] == len(tested)
    assert {row["metric"] for row in read_table(folder, "fading").to_pylist()} >= {"auc"}


def test_the_page_shows_it(lab: Path) -> None:
    folder = lab / "runs" / "along" / "latest"
    page = (folder / "report.html").read_text()
    assert "How does detection change during training?" in page
    assert 'id="trajectory"' in page
    assert (folder / "figures" / "trajectory.png").is_file()


def test_a_second_run_makes_nothing_again(lab: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (lab / "store").glob("*/*/manifest.json")}
    run(lab, ALONG, "name=again")
    after = {path: path.stat().st_mtime_ns for path in (lab / "store").glob("*/*/manifest.json")}
    assert before == after


def test_models_with_adapters_and_new_weights_are_kept_too(lab: Path) -> None:
    kept = "train.checkpoints={fractions: [0.5]}"
    run(lab, kept, "train.mode=lora", "train.lr=0.02", "name=adapted")
    [model] = [path.parent for path in (lab / "store" / "model").glob("*/adapter")]
    [half] = model.glob("step-*")
    assert (half / "adapter" / "adapter_model.safetensors").is_file()
    merged = load_causal_model(str(half)).state_dict()
    assert not any("lora" in name for name in merged)
    result = run(
        lab, kept, "train.mode=pretrain", "base=null", "detect.detectors=[loss]", "name=new"
    )
    steps = read_table(result.folder, "trajectory")["step"].to_pylist()
    assert 0 not in steps


def test_a_step_beyond_the_end_is_told_before_anything_runs(lab: Path) -> None:
    with pytest.raises(Exception, match="step 50 was asked for, and the run has 40") as found:
        read_experiment(lab / "tiny.yaml", ["train.checkpoints={steps: [50]}"])
    assert "train.checkpoints.steps" in str(found.value)
