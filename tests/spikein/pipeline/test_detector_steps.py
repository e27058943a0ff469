"""Which steps count as a detector's cost, and that what a step cost decides nothing."""

import pytest
from typer.testing import CliRunner

from detect.asked_model import COST_FILE
from spikein.cli.main import app
from spikein.pipeline.arm_nodes import detector_steps
from spikein.pipeline.build_graph import ExperimentGraph
from spikein.pipeline.graph import Graph
from tests.spikein.tiny import graph_of, write_tiny


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> ExperimentGraph:
    folder = tmp_path_factory.mktemp("steps")
    write_tiny(folder)
    return graph_of(
        folder,
        "twins={clean: true, retrained: 0.5, shadows: 2}",
        "detect.detectors=[loss, zlib, lowercase, reference, lira, dc_pdd, blind]",
        "train.checkpoints={every: 10}",
    )


def test_every_model_that_is_scored_is_there_with_its_scores(graph):
    (node,) = graph.nodes
    found = {one.scores.digest for one in node.models if one.scores}
    scores = {step.digest for step in graph.graph.steps if step.kind == "scores"}
    assert found == scores
    assert len(node.checkpoints) > 2, "the checkpoints on the way count, too"


def test_the_detectors_of_a_model_read_what_its_scores_read(graph):
    by_scores: dict[str, set[str]] = {}
    for one in detector_steps(graph.nodes):
        by_scores.setdefault(one.scores.digest, set()).update(s.digest for s in one.evidence)
    for step in graph.graph.steps:
        if step.kind != "scores":
            continue
        made = {
            given.digest
            for name, given in step.inputs.items()
            if given.kind in ("statistics", "frequency")
        }
        assert made <= by_scores[step.digest]


def test_a_detector_costs_what_nothing_but_detectors_needs(graph):
    (node,) = graph.nodes
    arm = {
        one.detector: [step.kind for step in one.evidence]
        for one in detector_steps(graph.nodes)
        if one.scores is node.scores
    }
    assert arm["loss"] == arm["zlib"] == ["statistics"]
    assert sorted(arm["lowercase"]) == ["statistics"] * 2
    assert "blind" not in arm, "it looks at no model, and is scored once, beside the base model"
    assert sorted(arm["dc_pdd"]) == ["frequency", "statistics"]
    # Shadow models are trained for `lira` alone; the arm's own training and its controls are not.
    assert arm["lira"].count("model") == 2
    assert arm["lira"].count("statistics") == 3
    assert not {"corpus", "tokenizer"} & set(arm["lira"])
    own = {step.digest for one in detector_steps(graph.nodes) for step in one.evidence}
    trained = [node.trained, node.twins.clean.trained, node.twins.retrained.trained]
    assert own.isdisjoint(step.digest for step in trained)


def test_what_a_step_cost_enters_no_digest(graph):
    for step in Graph(goals=graph.graph.goals).steps:
        if step.kind in ("statistics", "scores", "gradients"):
            assert COST_FILE in step.volatile, step.name


def scored_by(step) -> list[str]:
    return [text.partition(":")[0] for text in step.settings["detectors"]]


def test_the_control_is_scored_whatever_is_asked_for(tmp_path):
    """It looks at no model: once, beside the base model where there is one."""
    write_tiny(tmp_path)
    for detectors in ("[reference]", "[loss, 'blind:features=length']"):
        (node,) = graph_of(tmp_path, f"detect.detectors={detectors}").nodes
        assert "blind" in scored_by(node.base.scores)
        assert "blind" not in scored_by(node.scores)
    assert node.base.scores.settings["defaults"]["blind"] == "features=length"
    (node,) = graph_of(
        tmp_path, "detect.detectors=[loss]", "base=null", "train.mode=pretrain"
    ).nodes
    assert node.base is None
    assert scored_by(node.scores) == ["loss", "blind", "blind", "blind"]


def test_the_control_alone_is_refused_in_words(tmp_path):
    path = write_tiny(tmp_path)
    found = CliRunner().invoke(app, ["check", str(path), "detect.detectors=[blind]"])
    assert found.exit_code == 2, found.output
    assert isinstance(found.exception, SystemExit)
    said = " ".join(found.output.split())
    assert "detect.detectors: no requested detector looks at the model" in said
    assert "such as loss" in said
