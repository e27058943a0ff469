"""Done-when 6: unlearned models through the whole graph, one by a method of a user's own file."""

import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from spikein.api.plan import plan
from spikein.pipeline.arm_nodes import detector_steps
from spikein.runs.audit import audit_run
from tests.spikein.pipeline.unlearning.conftest import overrides_of
from tests.spikein.tiny import graph_of, run

pytestmark = pytest.mark.slow
LABELS = ["gradient_ascent", "npo", "mine"]


def scores(folder):
    rows = pq.read_table(folder / "scores.parquet").to_pylist()
    return {
        (row["detector"], row["example_id"]): row["score"]
        for row in rows
        if row["detector"] != "blind"
    }


def forget_ids(finished):
    node = finished.node
    rows = [
        {row["example_id"]: row["side"] for row in pq.read_table(path).to_pylist()}
        for path in (
            finished.stored(node.examples) / "examples.parquet",
            finished.stored(node.twins.retrained.membership) / "examples.parquet",
        )
    ]
    return {one for one, side in rows[0].items() if side == "member" and rows[1][one] != "member"}


def test_every_method_made_a_model_that_is_scored_like_the_arm(finished):
    unlearning = finished.node.unlearning
    assert [one.setting.label for one in unlearning.unlearned] == LABELS
    of_arm = scores(finished.stored(unlearning.model("original").scores))
    assert scores(finished.stored(unlearning.model("retrained").scores)).keys() == of_arm.keys()
    weights = load_file(finished.stored(unlearning.model("original").trained) / "model.safetensors")
    for one in unlearning.unlearned:
        found = load_file(finished.stored(one.trained) / "model.safetensors")
        assert any((found[name] != weights[name]).any() for name in weights)
        assert scores(finished.stored(one.scores)).keys() == of_arm.keys()


def test_the_forget_set_became_less_likely(finished):
    unlearning, forget = finished.node.unlearning, forget_ids(finished)

    def likely(step):
        found = scores(finished.stored(step))
        return sum(found["loss", name] for name in forget) / len(forget)

    before = likely(unlearning.model("original").scores)
    for one in unlearning.unlearned:
        assert likely(one.scores) < before


def test_each_method_was_fed_the_forget_set_and_no_non_member(finished):
    node, forget = finished.node, forget_ids(finished)
    pool = pq.read_table(finished.stored(node.examples) / "examples.parquet").to_pylist()
    retain = {one["example_id"] for one in pool if one["side"] == "member"} - forget
    for one in node.unlearning.unlearned:
        rows = pq.read_table(finished.stored(one.trained) / "exposures.parquet").to_pylist()
        fed = {row["example_id"] for row in rows if row["step"] is not None}
        assert fed >= forget
        assert fed <= forget | retain
        assert bool(fed - forget) == one.setting.needs_retain


def test_a_second_run_finds_everything_and_the_run_can_be_planned_and_audited(finished):
    path = finished.root / "tiny.yaml"
    planned = plan(path, overrides=overrides_of(finished.root), store=finished.root / "store")
    assert all(row.stored for row in planned.rows if row.kind in ("model", "scores"))
    labels = [row.label for row in planned.rows if row.kind == "model"]
    assert {f"{label}, seed 0" for label in LABELS} < set(labels)
    again = run(finished.root, *overrides_of(finished.root))
    assert again.built == 0
    # The streams are those of the arm and of the retrained model; unlearning has none.
    assert len(audit_run(finished.root / "runs" / "tiny" / "1", rules=None).streams) == 2
    assert detector_steps(finished.graph.nodes)


def test_an_edit_of_the_users_file_makes_another_model(finished):
    file = finished.root / "mine.py"
    text = file.read_text()
    file.write_text(text.replace("-batch.forget", "-2 * batch.forget"))
    try:
        (node,) = graph_of(finished.root, *overrides_of(finished.root)).nodes
    finally:
        file.write_text(text)
    before = {one.setting.label: one.trained.digest for one in finished.node.unlearning.unlearned}
    after = {one.setting.label: one.trained.digest for one in node.unlearning.unlearned}
    assert {label for label in LABELS if before[label] != after[label]} == {"mine"}
