"""Dataset-level detectors through the graph: what they read, and what a run says of them."""

from pathlib import Path

import pytest

from analysis.findings import read_table
from detect.dataset_detectors.orders import load_orders
from detect.scores.table import read_scores
from inject.errors import InputError, InputErrors
from inject.examples.example import read_examples
from spikein.pipeline.build_graph import ExperimentGraph
from tests.spikein.tiny import graph_of, write_tiny

ALL = "analysis.dataset_detectors=all"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("datasets")).parent


def digests(graph: ExperimentGraph, kind: str) -> set[str]:
    return {step.digest for step in graph.graph.steps if step.kind == kind}


def test_the_default_takes_no_pass_of_a_model_and_prism_reads_what_is_stored_anyway(tiny):
    plain = graph_of(tiny)
    prism = graph_of(tiny, "analysis.dataset_detectors=[prism]")
    for kind in ("orders", "paraphrase_scores"):
        assert not digests(plain, kind)
        assert digests(graph_of(tiny, ALL), kind)
    assert digests(plain, "statistics") == digests(prism, "statistics")


def test_prism_without_a_reference_is_refused_by_name_and_left_out_of_all(tiny):
    nothing = ("detect.reference=null", "detect.detectors=[loss]")
    with pytest.raises(InputError, match=r"prism needs a reference model.*\(detect.reference\)"):
        graph_of(tiny, *nothing, "analysis.dataset_detectors=[prism]")
    notes = graph_of(tiny, *nothing, ALL).notes
    assert any("prism needs a reference model" in note for note in notes)
    with pytest.raises(InputErrors, match="Did you mean 'prism'"):
        graph_of(tiny, "analysis.dataset_detectors=[prsm]")


@pytest.mark.slow
def test_every_dataset_detector_answers_in_a_run(shared_run):
    rows = read_table(shared_run.folder, "dataset_detectors").to_pylist()
    arm = [row for row in rows if row["model"] == "contaminated"]
    assert {row["detector"] for row in arm} == {
        "dataset_inference", "ensemble", "exchangeability", "paraphrase_test", "prism"
    }  # fmt: skip
    base = {row["detector"] for row in rows if row["model"] == "base"}
    assert base == {"dataset_inference", "ensemble"}, "the controls have no passes of their own"
    (orders,) = map(load_orders, shared_run.artifacts("orders"))
    # Two datasets of two sides, four shards, the order and three shuffles.
    assert orders.num_rows == 2 * 2 * 4 * 4
    (scores,) = map(read_scores, shared_run.artifacts("paraphrase_scores"))
    pool = read_examples(shared_run.stored(shared_run.node.examples))
    paraphrased = {one.example_id for one in pool if one.paraphrases}
    assert set(scores["example_id"].to_pylist()) == paraphrased
