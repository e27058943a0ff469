"""Dataset-level detectors through the graph: what they read, and what a run says of them."""

from pathlib import Path

import pytest

from analysis.findings import read_table
from detect.dataset_detectors.orders import load_orders
from detect.scores.table import read_scores
from inject.errors import InputError, InputErrors
from inject.examples.example import read_examples
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import ExperimentGraph, build_graph
from tests.pages import Page
from tests.spikein.tiny import run, write_tiny

ALL = "analysis.dataset_detectors=all"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("datasets"))


def graph_of(path: Path, *overrides: str) -> ExperimentGraph:
    return build_graph(read_experiment(path, overrides))


def kinds(graph: ExperimentGraph) -> set[str]:
    return {step.kind for step in graph.graph.steps}


def test_the_default_takes_no_pass_of_a_model(tiny):
    assert not kinds(graph_of(tiny)) & {"orders", "paraphrase_scores"}
    assert {"orders", "paraphrase_scores"} <= kinds(graph_of(tiny, ALL))


def test_prism_reads_statistics_that_are_stored_anyway(tiny):
    plain = graph_of(tiny, "detect.detectors=[loss, reference]")
    prism = graph_of(
        tiny, "detect.detectors=[loss, reference]", "analysis.dataset_detectors=[prism]"
    )
    digests = [
        {step.digest for step in one.graph.steps if step.kind == "statistics"}
        for one in (plain, prism)
    ]
    assert digests[0] == digests[1]


def test_prism_without_a_reference_is_refused_by_name_and_left_out_of_all(tiny):
    nothing = ("detect.reference=null", "detect.detectors=[loss]")
    with pytest.raises(InputError, match=r"prism needs a reference model.*\(detect.reference\)"):
        graph_of(tiny, *nothing, "analysis.dataset_detectors=[prism]")
    assert any(
        "prism needs a reference model" in one for one in graph_of(tiny, *nothing, ALL).notes
    )


def test_an_unknown_name_is_refused_before_anything_runs(tiny):
    with pytest.raises(InputErrors, match="Did you mean 'prism'"):
        read_experiment(tiny, ["analysis.dataset_detectors=[prsm]"])


@pytest.mark.slow
def test_a_run_answers_for_each_data_set_and_says_what_it_could_not(tmp_path):
    write_tiny(tmp_path)
    made = run(tmp_path, ALL, "analysis.shards=4", "analysis.shuffles=3")
    rows = read_table(made.folder, "dataset_detectors").to_pylist()
    arm = [row for row in rows if row["model"] == "contaminated"]
    assert {row["detector"] for row in arm} == {
        "dataset_inference", "ensemble", "exchangeability", "paraphrase_test", "prism"
    }  # fmt: skip
    base = {row["detector"] for row in rows if row["model"] == "base"}
    assert base == {"dataset_inference", "ensemble"}, "the controls have no passes of their own"
    (prism,) = {row["note"][:12] for row in arm if row["detector"] == "prism"}
    assert prism == "n too small:"
    order = next(
        row for row in arm if (row["detector"], row["rows"]) == ("exchangeability", "members")
    )
    assert "assumption not met" in order["note"], "copies were spliced apart"
    store = tmp_path / "store"
    (orders,) = [load_orders(folder) for folder in (store / "orders").iterdir()]
    assert orders.num_rows == 2 * 4 * 4, "two sides, four shards, the order and three shuffles"
    (scores,) = [read_scores(folder) for folder in (store / "paraphrase_scores").iterdir()]
    pools = [read_examples(folder) for folder in (store / "examples").iterdir()]
    paraphrased = {one.example_id for pool in pools for one in pool if one.paraphrases}
    assert set(scores["example_id"].to_pylist()) == paraphrased
    (table,) = Page(made.report.read_text()).titled("Findings on whole data sets")
    assert len(table.rows) - 1 == len(arm)
