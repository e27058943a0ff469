"""Dataset-level detectors through the graph: their inputs, and their findings in a run."""

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


def test_the_default_needs_no_model_pass_and_prism_reads_existing_statistics(tiny):
    plain = graph_of(tiny)
    prism = graph_of(tiny, "analysis.dataset_detectors=[prism]")
    for kind in ("orders", "paraphrase_scores"):
        assert not digests(plain, kind)
        assert digests(graph_of(tiny, ALL), kind)
    assert digests(plain, "statistics") == digests(prism, "statistics")


def test_prism_without_a_reference_is_refused_by_name_and_skipped_in_all(tiny):
    nothing = ("detect.reference=null", "detect.detectors=[loss]")
    with pytest.raises(InputError, match=r"prism needs a reference model.*\(detect.reference\)"):
        graph_of(tiny, *nothing, "analysis.dataset_detectors=[prism]")
    notes = graph_of(tiny, *nothing, ALL).notes
    assert any("prism needs a reference model" in note for note in notes)
    with pytest.raises(InputErrors, match="Did you mean 'prism'"):
        graph_of(tiny, "analysis.dataset_detectors=[prsm]")


@pytest.mark.slow
def test_all_dataset_detectors_answer_in_a_run(shared_run):
    rows = read_table(shared_run.folder, "dataset_detectors").to_pylist()
    arm = [row for row in rows if row["model"] == "contaminated"]
    assert {row["detector"] for row in arm} == {
        "dataset_inference", "ensemble", "exchangeability", "paraphrase_test", "prism"
    }  # fmt: skip
    base = {row["detector"] for row in rows if row["model"] == "base"}
    assert base == {"dataset_inference", "ensemble"}, "the controls have no separate passes"
    (orders,) = map(load_orders, shared_run.artifacts("orders"))
    # Two datasets of two sides, four shards, the order and three shuffles.
    assert orders.num_rows == 2 * 2 * 4 * 4
    (scores,) = map(read_scores, shared_run.artifacts("paraphrase_scores"))
    pool = read_examples(shared_run.stored(shared_run.node.examples))
    paraphrased = {example.example_id for example in pool if example.paraphrases}
    assert set(scores["example_id"].to_pylist()) == paraphrased
