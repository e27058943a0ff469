"""The steps that count as a detector's cost, and costs, which enter no digest."""

import pytest
from typer.testing import CliRunner

from detect.target_identity import COST_FILE
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


def test_all_scored_models_are_listed_with_their_scores(graph):
    (node,) = graph.nodes
    digests = {model.scores.digest for model in node.models if model.scores}
    scores = {step.digest for step in graph.graph.steps if step.kind == "scores"}
    assert digests == scores
    assert len(node.checkpoints) > 2, "intermediate checkpoints also count"


def test_the_detectors_of_a_model_read_the_inputs_of_its_scores(graph):
    by_scores: dict[str, set[str]] = {}
    for entry in detector_steps(graph.nodes):
        by_scores.setdefault(entry.scores.digest, set()).update(s.digest for s in entry.evidence)
    for step in graph.graph.steps:
        if step.kind != "scores":
            continue
        made = {
            source.digest
            for name, source in step.inputs.items()
            if source.kind in ("statistics", "frequency")
        }
        assert made <= by_scores[step.digest]


def test_a_detectors_cost_is_the_steps_that_only_detectors_need(graph):
    (node,) = graph.nodes
    arm = {
        entry.detector: [step.kind for step in entry.evidence]
        for entry in detector_steps(graph.nodes)
        if entry.scores is node.scores
    }
    assert arm["loss"] == arm["zlib"] == ["statistics"]
    assert sorted(arm["lowercase"]) == ["statistics"] * 2
    assert "blind" not in arm, "it reads no model, and is scored once, with the base model"
    assert sorted(arm["dc_pdd"]) == ["frequency", "statistics"]
    # Only `lira` needs shadow models; the arm's own training and its controls are not its cost.
    assert arm["lira"].count("model") == 2
    assert arm["lira"].count("statistics") == 3
    assert not {"corpus", "tokenizer"} & set(arm["lira"])
    own = {step.digest for entry in detector_steps(graph.nodes) for step in entry.evidence}
    trained = [node.trained, node.twins.clean.trained, node.twins.retrained.trained]
    assert own.isdisjoint(step.digest for step in trained)


def test_the_cost_of_a_step_enters_no_digest(graph):
    for step in Graph(goals=graph.graph.goals).steps:
        if step.kind in ("statistics", "scores", "gradients"):
            assert COST_FILE in step.volatile, step.name


def scored_by(step) -> list[str]:
    return [text.partition(":")[0] for text in step.settings["detectors"]]


def test_the_control_is_scored_with_any_detectors(tmp_path):
    """It reads no model: it is scored once, with the base model if there is one."""
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


def test_the_control_without_other_detectors_is_refused(tmp_path):
    path = write_tiny(tmp_path)
    result = CliRunner().invoke(app, ["check", str(path), "detect.detectors=[blind]"])
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    output = " ".join(result.output.split())
    assert "detect.detectors: no requested detector looks at the model" in output
    assert "such as loss" in output
