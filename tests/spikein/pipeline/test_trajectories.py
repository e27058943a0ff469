"""Intermediate models, scored and compared, from an experiment file to its page."""

import numpy as np
import pytest

from analysis.findings import read_table
from detect.scores.table import read_scores
from detect.settings import ScoringPolicy
from inject.examples.example import read_examples
from inject.stream.exposures import exposure_until, read_exposures
from spikein.config.load import read_experiment
from tests.spikein.tiny import build, graph_of, write_tiny
from train.models.pretrained import load_causal_model

STEPS = (13, 20)
TOTAL = 40
"""40,000 tokens in windows of 64, 16 per step."""


@pytest.mark.slow
def test_intermediate_models_are_stored_completely(shared_run):
    model = shared_run.stored(shared_run.node.trained)
    paths = [model / f"step-{step}" for step in STEPS]
    assert sorted(model.glob("step-*")) == paths
    first, second = (load_causal_model(str(path)).state_dict() for path in paths)
    assert any((first[name] != second[name]).any() for name in first)
    assert all((path / "tokenizer.json").is_file() for path in paths)
    assert not list((shared_run.root / "store" / ".unfinished").glob("model-*"))


@pytest.mark.slow
def test_scores_of_a_checkpoint_match_its_weights(shared_run):
    from detect.engine.forward_pass import token_statistics
    from detect.engine.target import load_target

    [scores] = (shared_run.root / "store" / "scores").glob("*-step-13-*")
    rows = read_scores(scores).to_pylist()
    loss = [row["score"] for row in rows if row["detector"] == "loss"]
    target = load_target(str(shared_run.stored(shared_run.node.trained) / "step-13"))
    texts = [row.text for row in read_examples(shared_run.stored(shared_run.node.examples))]
    statistics = token_statistics(target, texts, ScoringPolicy())
    expected = [float(np.mean(text_statistics.log_probability)) for text_statistics in statistics]
    np.testing.assert_allclose(loss, expected, atol=1e-4)
    assert "blind" not in {row["detector"] for row in rows}


@pytest.mark.slow
def test_trajectories_count_exposures_until_each_step(shared_run):
    folder, node = shared_run.folder, shared_run.node
    progress = [
        row for row in read_table(folder, "trajectory").to_pylist()
        if row["dataset"] == "all" and (row["detector"], row["selection"]) == ("loss", "default")
    ]  # fmt: skip
    assert {row["step"] for row in progress} == {0, *STEPS, TOTAL}
    exposures = read_exposures(shared_run.stored(node.trained))
    pool = read_examples(shared_run.stored(node.examples))
    tested = {row.example_id for row in pool if (row.side, row.split) == ("member", "test")}
    for step in (*STEPS, TOTAL):
        seen = exposure_until(exposures, step)
        [row] = [row for row in progress if (row["step"], row["copies"]) == (step, "all")]
        assert row["n_members"] == sum(seen[name].copies > 0 for name in tested if name in seen)
        assert row["tokens"] == min(step * 1024, 40_000 // 64 * 64)
    [start] = [row for row in progress if (row["step"], row["copies"]) == (0, "0")]
    assert start["n_members"] == len(tested)
    assert {row["metric"] for row in read_table(folder, "fading").to_pylist()} >= {"auc"}


@pytest.mark.slow
def test_models_with_adapters_are_also_stored(tmp_path):
    write_tiny(tmp_path)
    graph = graph_of(
        tmp_path, "train.checkpoints={fractions: [0.5]}", "train.mode=lora", "corpus.tokens=20_000"
    )
    [model] = build(tmp_path, graph.nodes[0].trained)
    [half] = model.path.glob("step-*")
    assert (half / "adapter" / "adapter_model.safetensors").is_file()
    merged = load_causal_model(str(half)).state_dict()
    assert not any("lora" in name for name in merged)


def test_a_trajectory_begins_at_the_start_of_training_and_ends_with_all_tokens(
    tmp_path,
):
    write_tiny(tmp_path)
    # 625 windows of 64 tokens, 40 per step: the last step has 25.
    overrides = ("train.checkpoints={steps: [3]}", "train.batch_tokens=2560", "train.mode=finetune")
    for more, steps in (((), [0, 3, 16]), (("train.mode=pretrain",), [3, 16])):
        made = graph_of(tmp_path, *overrides, *more)
        assert [model.checkpoint for model in made.nodes[0].checkpoints] == steps
        tokens = [arm["tokens"] for arm in made.trajectory.settings["arms"]]
        assert tokens == [min(step * 2560, 625 * 64) for step in steps]


def test_a_step_beyond_the_end_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(Exception, match="step 50 is listed, but the run has 40") as caught:
        read_experiment(write_tiny(tmp_path), ["train.checkpoints={steps: [50]}"])
    assert "train.checkpoints.steps" in str(caught.value)
