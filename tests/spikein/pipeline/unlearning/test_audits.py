"""The audits of a finished experiment, against what lies in its store and its run folder."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.stream.exposures import read_exposures, seen_copy_counts
from tests.spikein.tiny import graph_of, write_tiny

pytestmark = pytest.mark.slow


def test_each_unlearned_model_is_audited_on_the_forgotten_texts(finished):
    nodes = finished.node.unlearning
    pool = {one.example_id: one for one in read_examples(finished.stored(nodes.examples))}
    seen = {
        one.example_id
        for one in read_examples(finished.stored(nodes.membership))
        if one.side == "member"
    }
    copies = seen_copy_counts(read_exposures(finished.stored(nodes.model("original").trained)))
    forgotten = {
        name
        for name, one in pool.items()
        if one.side == "member" and name not in seen and copies.get(name)
    }
    audits = finished.graph.unlearning_audits
    steps = [audits.inputs[name] for name in sorted(audits.inputs)]
    assert len(steps) == len(nodes.unlearned)
    assert len({step.inputs["original-written"].digest for step in steps}) == 1
    assert len({step.inputs["retrained-written"].digest for step in steps}) == 1
    found = read_table(finished.stored(audits), "unlearning_audits").to_pylist()
    for step, one in zip(steps, nodes.unlearned, strict=True):
        folder = finished.stored(step)
        chunks = pq.read_table(folder / "chunks.parquet").to_pylist()
        outside = [row for row in chunks if row["part"] == "holdout"]
        chunks = [row for row in chunks if row["part"] == "audited"]
        assert {row["text_id"] for row in chunks} == forgotten
        scores = {}
        for name, scored in (
            ("original", nodes.model("original").scores),
            ("unlearned", one.scores),
            ("retrained", nodes.model("retrained").scores),
        ):
            table = pq.read_table(finished.stored(scored) / "scores.parquet").to_pylist()
            scores[name] = {
                row["example_id"]: row["score"] for row in table if row["detector"] == "loss"
            }
        for row in chunks:
            ratio = scores["unlearned"][row["text_id"]] / scores["original"][row["text_id"]]
            assert row["ratio"] == pytest.approx(ratio)
            assert row["copies"] == copies[row["text_id"]]
        own = {row["quantity"]: row["value"] for row in found if row["method"] == one.setting.label}
        assert own["flagged"] == pytest.approx(np.mean([row["suspicious"] for row in chunks]))
        low, high = 1 / 1.15, 1.15
        alarms = [low < row["retrained_ratio"] < high for row in chunks]
        assert own["false_alarms"] == pytest.approx(np.mean(alarms))
        strangers = {name for name, one in pool.items() if one.side == "nonmember"}
        assert {row["text_id"] for row in outside} == strangers
        held = [
            low < scores["unlearned"][name] / scores["original"][name] < high for name in strangers
        ]
        assert own["flagged_holdout"] == pytest.approx(np.mean(held))
        written = pq.read_table(folder / "continuations.parquet").to_pylist()
        assert len(written) == 3 * 3 * len(chunks)
        best: dict[tuple[str, int], float] = {}
        for row in written:
            key = row["model"], row["chunk"]
            best[key] = max(best.get(key, 0), row["longest_common_substring"])
        level = max(value for (model, _), value in best.items() if model == "retrained")
        known = [best["unlearned", row["chunk"]] > level for row in chunks]
        assert own["remembered_unlearned"] == pytest.approx(np.mean(known))
        assert json.loads((folder / "unlearning_audit.json").read_text())["verdict"]


def test_the_detector_must_be_one_of_the_experiments(tmp_path):
    write_tiny(tmp_path)
    section = "unlearning={forget: {share: 0.5}, methods: [npo], audit: {detector: zlib}}"
    with pytest.raises(InputError, match=r"detect\.detectors.*not among the detectors"):
        graph_of(tmp_path, section, "detect.detectors=[loss]")
