"""Twins through the whole graph: whom they saw, what they share, and how they are reported."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from detect.detectors.lira import likelihood_ratios
from detect.token_statistics import read_statistics
from inject.corpus.corpus import Corpus
from inject.errors import InputError, InputErrors
from inject.examples.example import read_examples
from inject.plan.plan import read_plan
from inject.step import Step
from inject.stream.exposures import read_exposures
from spikein.api.report import render_report
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import ExperimentGraph, build_graph
from spikein.pipeline.graph import Graph
from spikein.pipeline.twin_models import TwinNodes, twins_of
from spikein.runs.audit import audit_run
from spikein.store.store import Store
from tests.spikein.pipeline.test_pipeline import run
from tests.spikein.samples import read
from tests.spikein.tiny import write_tiny
from train.models.model_node import ModelNode
from train.models.rounded_weights import rounded_step

TWINS = "twins={clean: true, shadows: 2, retrained: 0.5}"
DETECTORS = "detect.detectors=[loss, reference, lira, blind]"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("twins"))


def graph_of(path: Path, *overrides: str) -> ExperimentGraph:
    return build_graph(read_experiment(path, [TWINS, DETECTORS, *overrides]))


def clean_twins(experiment_graph: ExperimentGraph) -> list[str]:
    return [node.twins.clean.trained.digest for node in experiment_graph.nodes if node.twins.clean]


def test_arms_that_differ_in_their_copies_share_one_clean_twin(tiny):
    sweep = (
        "sweep={copies: [{fixed: 1}, {poisson: 4}], placement.policy: [splice, document], "
        "train.lr: [1.0e-2, 1.0e-3]}"
    )
    experiment_graph = graph_of(
        tiny, sweep, "seeds=[0, 1]", "detect.detectors=[loss]", "twins.shadows=0"
    )
    assert len(experiment_graph.nodes) == 16
    twins = clean_twins(experiment_graph)
    # One a seed and learning rate.
    assert len(twins) == 16
    assert len(set(twins)) == 4
    arms = experiment_graph.results.settings["arms"]
    shown = [(dict(arm["axes"]), arm["seed"]) for arm in arms if arm["model"] == "twin"]
    assert sorted(shown, key=str) == sorted(
        [({"train.lr": lr}, seed) for lr in ("0.01", "0.001") for seed in (0, 1)], key=str
    )
    retrained = {
        number: dict(arm["axes"]) for number, arm in enumerate(arms) if arm["model"] == "retrained"
    }
    inputs = experiment_graph.results.inputs
    trained = {inputs[f"{number:04d}-model"].digest for number in retrained}
    assert len(trained) == 16
    assert [*retrained.values()] == [node.arm.labels for node in experiment_graph.nodes]


def test_twins_leave_the_arm_and_its_base_as_they_were(tiny):
    plain = build_graph(read_experiment(tiny, [DETECTORS.replace("lira, ", "")]))
    beside = graph_of(tiny)
    for one, other in zip(plain.nodes, beside.nodes, strict=True):
        assert one.trained.digest == other.trained.digest
        assert one.plan.digest == other.plan.digest
        assert one.base.scores.digest == other.base.scores.digest


def steps_of(step: Step) -> list[Step]:
    return [step, *(found for each in step.inputs.values() for found in steps_of(each))]


def test_twins_start_from_the_arms_start_whatever_the_mode(tiny):
    for mode, base in (("lora", "base.lr=0.01"), ("finetune", "base.lr=0.01"), ("pretrain", "")):
        overrides = [f"train.mode={mode}", base or "base=null"]
        overrides += [] if base else ["detect.reference=twin"]
        (node,) = graph_of(tiny, *overrides).nodes
        twins = node.twins.models
        for twin in twins:
            assert twin.trained.settings == node.trained.settings
            assert ("base" in twin.trained.inputs) == bool(base)
            if base:
                assert twin.trained.inputs["base"].digest == node.base.node.step.digest
        assert len({twin.trained.digest for twin in twins}) == 4


def test_doses_are_the_arms_but_in_shadow_models(tiny):
    """LiRA would otherwise tell the arm's doses, in place of who was seen."""
    (node,) = graph_of(tiny, "twins.shadows=4").nodes
    assert node.twins.retrained.plan.settings["draw_number"] == 0
    assert [shadow.plan.settings["draw_number"] for shadow in node.twins.shadows] == [1, 1, 2, 2]


def test_a_new_role_is_scored_and_compared_by_being_made(tiny, monkeypatch):
    """Nothing else has to know it: to detectors it is what the arm's own model is."""

    def with_rounded(contaminated, **steps):
        rounded = rounded_step(contaminated.trained, "8bit", contaminated.arm.experiment.model)
        model = replace(contaminated, role="rounded", node=ModelNode(step=rounded))
        return TwinNodes((*twins_of(contaminated, **steps).models, model))

    monkeypatch.setattr("spikein.pipeline.build_graph.twins_of", with_rounded)
    experiment_graph = graph_of(tiny, "detect.detectors=[loss, reference]", "twins.shadows=0")
    (node,) = experiment_graph.nodes
    assert [one.role for one in node.reported] == ["twin", "retrained", "rounded"]
    rounded = node.reported[-1]
    assert rounded in node.models
    assert rounded.scored.role == "arm"
    assert rounded.trained in Graph(goals=(rounded.scores,)).steps
    results = experiment_graph.results
    assert rounded.scores in results.inputs.values()
    assert "rounded" in {arm["model"] for arm in results.settings["arms"]}


def test_the_reference_can_be_the_clean_twin(tiny):
    (node,) = graph_of(tiny, "detect.reference=twin").nodes
    clean = node.twins.clean.trained
    assert node.scores.inputs["reference"].inputs["model"].digest == clean.digest
    by_model = {one.role: one.scores for one in node.reported}
    assert by_model["retrained"].inputs["reference"].inputs["model"].digest == clean.digest
    # The twin is not compared with itself, nor the shared base model with one arm's twin.
    for scores in (by_model["twin"], node.base.scores):
        assert "reference" not in scores.settings["defaults"]
        assert "loss" in scores.settings["defaults"]
    (node,) = graph_of(tiny).nodes
    assert node.scores.inputs["reference"].inputs["model"].digest == node.base.node.step.digest


def test_all_leaves_lira_out_without_shadow_models_and_says_so(tiny):
    without = graph_of(tiny, "twins.shadows=0", "detect.detectors=all")
    assert any("lira needs shadow models" in note for note in without.notes)
    assert "lira" not in without.nodes[0].scores.settings["defaults"]
    kinds = {step.label for step in without.graph.steps if step.kind == "model"}
    assert not any("shadow" in label for label in kinds)
    with_shadows = graph_of(tiny, "detect.detectors=all")
    assert not any("lira" in note for note in with_shadows.notes)
    assert "lira" in with_shadows.nodes[0].scores.settings["defaults"]
    with pytest.raises(InputError, match=r"lira needs shadow models.*twins\.shadows"):
        graph_of(tiny, "twins.shadows=0")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["detect.reference=twin"], "detect.reference: there is no clean twin"),
        (["twins.shadows=3"], "twins.shadows: 3 is odd"),
        (["twins.retrained=1"], "twins.retrained: is the number 1"),
        (
            ["twins.shadows=2", "variants={of: [{kind: lower_case}]}"],
            "twins.shadows: shadow models spike non-members",
        ),
        (["twins.shadows=2", "detect.detectors=[loss]"], "asked for reads shadow models. Add lira"),
        (
            ["twins.clean=true", "train.mode=finetune", "train.loss_on=completion"],
            "twins.clean: a stream without copies holds no answer",
        ),
    ],
)
def test_contradictions_are_told_before_anything_runs(overrides, said):
    with pytest.raises(InputErrors) as caught:
        read(*overrides)
    (problem,) = caught.value.problems
    assert said in problem


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("twins-run")
    path = write_tiny(root)
    overrides = [TWINS, DETECTORS, "detect.reference=twin", "copies={levels: [1, 2, 5]}"]
    result = run(path, root, *overrides)
    experiment_graph = build_graph(read_experiment(path, overrides))
    return root, result, experiment_graph


def stored(root: Path, step: Step) -> Path:
    artifact = Store(root / "store").find(step.digest, kind=step.kind)
    assert artifact is not None
    return artifact.path


def exposed(folder: Path) -> dict[str, set[int]]:
    """The copies of each example that the model saw, in whole or in part."""
    found: dict[str, set[int]] = {}
    for row in read_exposures(folder).to_pylist():
        if row["window"] is not None:
            found.setdefault(row["example_id"], set()).add(row["copy"])
    return found


@pytest.mark.slow
def test_the_clean_twin_saw_the_clean_corpus_and_nobody(finished):
    root, _, experiment_graph = finished
    (node,) = experiment_graph.nodes
    twin = node.twins.clean
    folder = stored(root, twin.trained)
    assert exposed(folder) == {}
    assert read_exposures(folder).num_rows == 0
    corpus = Corpus.open(stored(root, node.corpus))
    plan = read_plan(stored(root, twin.plan))
    budget = experiment_graph.experiment.corpus.tokens
    assert np.array_equal(plan.view(corpus).read(0, budget), corpus.read(0, budget))
    ours, arms = (pq.read_table(at / "log.parquet") for at in (folder, stored(root, node.trained)))
    for column in ("step", "tokens", "lr"):
        assert ours[column].to_pylist() == arms[column].to_pylist()


@pytest.mark.slow
def test_the_retrained_model_saw_the_arms_copies_of_all_but_the_forget_set(finished):
    root, _, experiment_graph = finished
    (node,) = experiment_graph.nodes
    pool = read_examples(stored(root, node.examples))
    rows = read_examples(stored(root, node.twins.retrained.membership))
    kept = {one.example_id for one in rows if one.side == "member"}
    members = {one.example_id for one in pool if one.side == "member"}
    assert kept < members
    assert len(kept) == 12
    arm = read_plan(stored(root, node.plan)).realised()
    again = read_plan(stored(root, node.twins.retrained.plan)).realised()
    assert again == {name: count if name in kept else 0 for name, count in arm.items()}
    seen = exposed(stored(root, node.twins.retrained.trained))
    assert seen.keys() <= kept
    assert sum(len(copies) for copies in seen.values()) > 20
    # Forgotten members are the row 0 of the metrics.
    metrics = read_table(root / "runs" / "tiny" / "latest", "metrics").to_pylist()
    (forgotten,) = [
        row
        for row in metrics
        if (row["model"], row["detector"], row["copies"], row["dataset"], row["metric"])
        == ("retrained", "loss", "0", "all", "auc")
        and row["selection"] == "default"
    ]
    test_rows = {one.example_id for one in pool if one.split == "test"}
    assert forgotten["n_members"] == len((members - kept) & test_rows)


@pytest.mark.slow
def test_each_candidate_is_in_one_of_two_shadow_models(finished):
    root, _, experiment_graph = finished
    (node,) = experiment_graph.nodes
    pool = read_examples(stored(root, node.examples))
    memberships = [
        {
            one.example_id
            for one in read_examples(stored(root, shadow.membership))
            if one.side == "member"
        }
        for shadow in node.twins.shadows
    ]
    assert not memberships[0] & memberships[1]
    assert memberships[0] | memberships[1] == {one.example_id for one in pool}
    for shadow, members in zip(node.twins.shadows, memberships, strict=True):
        realised = read_plan(stored(root, shadow.plan)).realised()
        assert {name for name, count in realised.items() if count} == members
        assert exposed(stored(root, shadow.trained)).keys() <= members


@pytest.mark.slow
def test_scores_compare_with_the_twin_and_with_the_shadow_models(finished):
    root, _, experiment_graph = finished
    (node,) = experiment_graph.nodes
    pool = read_examples(stored(root, node.examples))

    def means(step: Step) -> np.ndarray:
        table = read_statistics(stored(root, step))
        return np.array([np.mean(table[one.example_id].log_probability) for one in pool])

    inputs = node.scores.inputs
    scores = pq.read_table(stored(root, node.scores) / "scores.parquet").to_pylist()

    def scored(detector: str, setting: str) -> list[float]:
        rows = {
            row["example_id"]: row["score"]
            for row in scores
            if (row["detector"], row["setting"]) == (detector, setting)
        }
        return [rows[one.example_id] for one in pool]

    target = means(inputs["view-text"])
    np.testing.assert_allclose(
        scored("reference", "-"), target - means(inputs["reference"]), atol=1e-5
    )
    inside = [
        [one.side == "member" for one in read_examples(stored(root, step))]
        for step in (inputs["0000-membership"], inputs["0001-membership"])
    ]
    shadows = np.stack([means(inputs["0000-shadow"]), means(inputs["0001-shadow"])])
    expected = likelihood_ratios(target, shadows, np.array(inside)).values
    np.testing.assert_allclose(scored("lira", "-"), expected, atol=1e-4)


@pytest.mark.slow
def test_the_page_shows_twins_and_no_shadow_model(finished):
    root, result, _ = finished
    metrics = read_table(root / "runs" / "tiny" / "latest", "metrics")
    assert set(metrics["model"].to_pylist()) == {"contaminated", "base", "twin", "retrained"}
    twins = {
        row["detector"]: row["copies"] for row in metrics.to_pylist() if row["model"] == "twin"
    }
    assert twins == {"loss": "all", "lira": "all"}
    page = result.report.read_text()
    assert "twin model" in page
    assert "retrained model" in page
    assert "After a perfect removal" in page
    assert re.search(r'<th scope="col"[^>]*>forgotten', page)
    assert "reference compares with the clean twin" in page
    assert any(line.startswith("Clean twin: ") for line in result.summary)
    # Shadow models are trained, too, so their streams are audited, as the command shows.
    streams = audit_run(root / "runs" / "tiny" / "latest", rules=None).streams
    assert len(streams) > 3
    assert f"{len(streams)} streams searched" in result.summary[0]
    again = render_report(root / "runs" / "tiny" / "latest", store_root=root / "store")
    assert "Clean twin" in again.read_text()


@pytest.mark.slow
def test_retraining_without_some_goes_with_variants_and_answers(tmp_path):
    write_tiny(tmp_path)
    run(
        tmp_path / "tiny.yaml",
        tmp_path,
        "train.mode=lora",
        "train.loss_on=completion",
        "variants={of: [{kind: whole}, {kind: replaced, share: 0.3}]}",
        "twins={retrained: 0.5}",
        "detect.detectors=[loss]",
    )
    (folder,) = (tmp_path / "store" / "model").glob("retrained-*")
    (arm,) = (tmp_path / "store" / "model").glob("seed-0-*")
    seen, arms = exposed(folder), exposed(arm)
    assert seen.keys() < arms.keys()
    variants = [
        {(row["example_id"], row["copy"]): row["variant"] for row in read_exposures(at).to_pylist()}
        for at in (folder, arm)
    ]
    assert variants[0]
    assert variants[0].items() <= variants[1].items()
    assert set(variants[0].values()) == {"whole", "replaced=0.3"}
