"""Relearning and conditions through the whole graph, read from the artifacts on the disk."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from tests.spikein.pipeline.unlearning.conftest import overrides_of
from tests.spikein.shared_run import SharedRun
from tests.spikein.tiny import build, graph_of
from train.models.rounded_weights import rounded

pytestmark = pytest.mark.slow
MORE = (
    "unlearning.methods=[{method: gradient_ascent, lr: 3.0e-3, epochs: 2}]",
    "unlearning.relearn={steps: [1, 4], lr: 3.0e-3}",
    "unlearning.conditions=[8bit, 4bit, paraphrase]",
    "detect.detectors=[loss, reference]",
)


@pytest.fixture(scope="module")
def probed(finished) -> SharedRun:
    graph = graph_of(finished.root, *overrides_of(finished.root), *MORE)
    goals = [step for step in graph.graph.steps if step.kind in ("scores", "unlearning")]
    build(finished.root, *goals)
    return SharedRun(finished.root, graph)


def rows_of(folder):
    return pq.read_table(folder / "examples.parquet").to_pylist()


def losses(folder):
    rows = pq.read_table(folder / "scores.parquet").to_pylist()
    return {row["example_id"]: row["score"] for row in rows if row["detector"] == "loss"}


def sides(folder):
    return {row["example_id"] for row in rows_of(folder) if row["side"] == "member"}


def test_one_half_of_the_forget_set_is_learnt_again_and_all_rows_are_scored(probed):
    unlearning = probed.node.unlearning
    pool = sides(probed.stored(unlearning.examples))
    forget = pool - sides(probed.stored(unlearning.membership))
    half = sides(probed.stored(unlearning.relearn_half))
    assert half < forget
    assert abs(len(half) - len(forget) / 2) <= 2
    (unlearned,) = unlearning.unlearned
    assert unlearning.model("original").relearned == {}
    for further in (unlearned, unlearning.model("retrained")):
        assert list(further.relearned) == [1, 4]
        start = losses(probed.stored(further.scores))
        found = {step: losses(probed.stored(one)) for step, one in further.relearned.items()}
        assert found[1].keys() == start.keys()
        mean = [
            sum(scores[name] for name in half) / len(half) for scores in (start, *found.values())
        ]
        assert mean == sorted(mean)
        step = next(iter(further.relearned.values())).inputs["view-text"].inputs["model"]
        exposures = pq.read_table(probed.stored(step) / "exposures.parquet")
        assert set(exposures["example_id"].to_pylist()) == half


def test_weights_are_rounded_and_scores_move_little(probed):
    from safetensors.torch import load_file

    unlearning = probed.node.unlearning
    for further in (unlearning.model("original"), unlearning.unlearned[0]):
        before = load_file(probed.stored(further.trained) / "model.safetensors")
        plain = losses(probed.stored(further.scores))
        off = {}
        for bits in ("8bit", "4bit"):
            step = further.conditions[bits].inputs["view-text"].inputs["model"]
            after = load_file(probed.stored(step) / "model.safetensors")
            for name, weight in before.items():
                expected = rounded(weight, bits) if name.endswith("_proj.weight") else weight
                assert (after[name] == expected).all()
            found = losses(probed.stored(further.conditions[bits]))
            assert found.keys() == plain.keys()
            off[bits] = sum(abs(found[name] - plain[name]) for name in plain)
        assert 0 < off["8bit"] < off["4bit"]


def test_a_paraphrase_is_scored_under_the_id_of_its_row(probed):
    unlearning = probed.node.unlearning
    rows = {row["example_id"]: row for row in rows_of(probed.stored(unlearning.examples))}
    step = unlearning.unlearned[0].conditions["paraphrase"]
    other = rows_of(probed.stored(step.inputs["examples"]))
    assert {row["example_id"] for row in other} == {
        name for name, row in rows.items() if row["paraphrases"]
    }
    for row in other:
        before = rows[row["example_id"]]
        assert row["text"] == before["paraphrases"][0] != before["text"]
        assert (row["side"], row["split"]) == (before["side"], before["split"])
    assert losses(probed.stored(step)).keys() == {row["example_id"] for row in other}


def test_the_measures_tell_of_relearning_and_of_every_condition(probed):
    rows = read_table(probed.stored(probed.graph.unlearning), "unlearning").to_pylist()
    relearnt = {(row["model"], row["method"]): row for row in rows
                if row["measure"] == "relearn_steps"}  # fmt: skip
    assert set(relearnt) == {("retrained", "-"), ("unlearned", "gradient_ascent")}
    unlearning = probed.node.unlearning
    forget = sides(probed.stored(unlearning.examples)) - sides(probed.stored(unlearning.membership))
    rest = forget - sides(probed.stored(unlearning.relearn_half))
    for row in relearnt.values():
        assert 0 < row["forget"] <= len(rest)
        assert np.isnan(row["value"]) or row["value"] in (0, 1, 4)
    for bits in ("8bit", "4bit"):
        measures = {row["measure"] for row in rows if row["setting"] == f"condition={bits}"}
        assert measures == {"auc", "auc_difference", "auc_change"}
