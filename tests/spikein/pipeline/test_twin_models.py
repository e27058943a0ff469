"""Twins through the whole graph: their training data, shared models, and findings."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from detect.detectors.lira import likelihood_ratios
from detect.token_statistics import read_statistics
from inject.corpus.corpus import Corpus
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.plan.plan import read_plan
from inject.step import Step
from inject.stream.exposures import read_exposures
from spikein.pipeline.build_graph import ExperimentGraph
from tests.spikein import tiny as tiny_experiment
from tests.spikein.samples import problems
from tests.spikein.tiny import write_tiny

TWINS = "twins={clean: true, shadows: 2, retrained: 0.5}"
DETECTORS = "detect.detectors=[loss, reference, lira, blind]"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("twins")).parent


def graph_of(folder: Path, *overrides: str) -> ExperimentGraph:
    return tiny_experiment.graph_of(folder, TWINS, DETECTORS, *overrides)


def test_arms_that_differ_in_their_copies_share_one_clean_twin(tiny):
    sweep = (
        "sweep={copies: [{fixed: 1}, {poisson: 4}], placement.policy: [splice, document], "
        "train.lr: [1.0e-2, 1.0e-3]}"
    )
    experiment_graph = graph_of(
        tiny, sweep, "seeds=[0, 1]", "detect.detectors=[loss]", "twins.shadows=0"
    )
    assert len(experiment_graph.nodes) == 16
    twins = [node.twins.clean.trained.digest for node in experiment_graph.nodes]
    # One per seed and learning rate.
    assert len(twins) == 16
    assert len(set(twins)) == 4
    arms = experiment_graph.results.settings["arms"]
    twin_arms = [(dict(arm["axes"]), arm["seed"]) for arm in arms if arm["model"] == "twin"]
    assert sorted(twin_arms, key=str) == sorted(
        [({"train.lr": lr}, seed) for lr in ("0.01", "0.001") for seed in (0, 1)], key=str
    )
    retrained = {
        number: dict(arm["axes"]) for number, arm in enumerate(arms) if arm["model"] == "retrained"
    }
    inputs = experiment_graph.results.inputs
    trained = {inputs[f"{number:04d}-model"].digest for number in retrained}
    assert len(trained) == 16
    assert [*retrained.values()] == [node.arm.labels for node in experiment_graph.nodes]


def test_twins_start_from_the_arms_start_in_all_modes(tiny):
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


def test_copy_counts_are_the_arms_except_in_shadow_models(tiny):
    """Otherwise LiRA would detect the arm's copy counts in place of membership."""
    (node,) = graph_of(tiny, "twins.shadows=4").nodes
    assert node.twins.retrained.plan.settings["draw_number"] == 0
    assert [shadow.plan.settings["draw_number"] for shadow in node.twins.shadows] == [1, 1, 2, 2]


def test_retrained_models_have_the_arms_variants_and_no_twin_has_its_checkpoints(tiny):
    plain, checkpointed, varied = (
        graph_of(tiny, "detect.detectors=[loss]", "twins.shadows=0", *more).nodes[0]
        for more in (
            (),
            ("train.checkpoints={steps: [3]}",),
            ("variants={of: [{kind: whole}, {kind: replaced, share: 0.3}]}",),
        )
    )
    assert checkpointed.trained.digest != plain.trained.digest
    assert [twin.trained.digest for twin in checkpointed.twins.models] == [
        twin.trained.digest for twin in plain.twins.models
    ]
    assert varied.twins.clean.trained.digest == plain.twins.clean.trained.digest
    carried = [
        plan.inputs["variants"].digest for plan in (varied.plan, varied.twins.retrained.plan)
    ]
    assert carried[0] == carried[1]
    assert "variants" not in varied.twins.clean.plan.inputs


def test_scores_get_the_membership_of_each_shadow_model(tiny):
    (node,) = graph_of(tiny, "twins.shadows=4").nodes
    inputs = node.scores.inputs
    for number, shadow in enumerate(node.twins.shadows):
        assert inputs[f"{number:04d}-membership"].digest == shadow.membership.digest
        trained = inputs[f"{number:04d}-shadow"].inputs["model"]
        assert trained.digest == shadow.trained.digest
        assert trained.inputs["examples"].digest == shadow.membership.digest
    assert len({shadow.membership.digest for shadow in node.twins.shadows}) == 4


def test_the_reference_can_be_the_clean_twin(tiny):
    (node,) = graph_of(tiny, "detect.reference=twin").nodes
    clean = node.twins.clean.trained
    assert node.scores.inputs["reference"].inputs["model"].digest == clean.digest
    by_model = {model.role: model.scores for model in node.reported}
    assert by_model["retrained"].inputs["reference"].inputs["model"].digest == clean.digest
    # The twin is not compared with itself, nor the shared base model with one arm's twin.
    for scores in (by_model["twin"], node.base.scores):
        assert "reference" not in scores.settings["defaults"]
        assert "loss" in scores.settings["defaults"]
    (node,) = graph_of(tiny).nodes
    assert node.scores.inputs["reference"].inputs["model"].digest == node.base.node.step.digest


def test_all_skips_lira_without_shadow_models_with_a_note(tiny):
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
    ("overrides", "message"),
    [
        (["detect.reference=twin"], "detect.reference: there is no clean twin"),
        (["twins.shadows=3"], "twins.shadows: 3 is odd"),
        (
            ["twins.shadows=2", "variants={of: [{kind: lower_case}]}"],
            "twins.shadows: shadow models also spike non-members",
        ),
        (
            ["twins.shadows=2", "detect.detectors=[loss]"],
            "no requested detector reads shadow models. Add lira",
        ),
        (
            ["twins.clean=true", "train.mode=finetune", "train.loss_on=completion"],
            "twins.clean: a stream without copies contains no answer",
        ),
        (
            ["train.epochs=2", "placement.between=[0.5, 1]"],
            "placement.between: 2 epochs see every window again",
        ),
        (
            ["corpus.sources=[]", "corpus.imported={kind: megatron, path: here}"],
            "model.tokenizer: an imported corpus is already tokenised",
        ),
        (
            [
                "corpus.sources=[]",
                "corpus.imported={kind: megatron, path: here}",
                "model.tokenizer=here",
                "analysis.background_tokens=9",
            ],
            "analysis.background_tokens: an imported corpus has no documents after it",
        ),
    ],
)
def test_contradictions_are_refused_before_anything_runs(overrides, message):
    (problem,) = problems(*overrides)
    assert message in problem


def exposed(folder: Path) -> dict[str, set[int]]:
    """The copies of each example that the model saw, in whole or in part."""
    copies_seen: dict[str, set[int]] = {}
    for row in read_exposures(folder).to_pylist():
        if row["window"] is not None:
            copies_seen.setdefault(row["example_id"], set()).add(row["copy"])
    return copies_seen


@pytest.mark.slow
def test_the_clean_twin_saw_the_clean_corpus_and_no_example(shared_run):
    node, stored = shared_run.node, shared_run.stored
    twin = node.twins.clean
    folder = stored(twin.trained)
    assert exposed(folder) == {}
    assert read_exposures(folder).num_rows == 0
    corpus = Corpus.open(stored(node.corpus))
    plan = read_plan(stored(twin.plan))
    budget = shared_run.graph.experiment.corpus.tokens
    assert np.array_equal(plan.view(corpus).read(0, budget), corpus.read(0, budget))
    twin_log, arm_log = (pq.read_table(at / "log.parquet") for at in (folder, stored(node.trained)))
    for column in ("step", "tokens", "lr"):
        assert twin_log[column].to_pylist() == arm_log[column].to_pylist()


@pytest.mark.slow
def test_forgotten_members_are_the_row_with_0_copies(shared_run):
    node, stored = shared_run.node, shared_run.stored
    members, remaining = (
        {example.example_id for example in read_examples(stored(step)) if example.side == "member"}
        for step in (node.examples, node.twins.retrained.membership)
    )
    test_rows = {example.example_id for example in read_examples(stored(node.examples))
                 if example.split == "test"}  # fmt: skip
    (forgotten,) = [
        row
        for row in read_table(shared_run.folder, "metrics").to_pylist()
        if (row["model"], row["detector"], row["copies"], row["dataset"], row["metric"])
        == ("retrained", "loss", "0", "all", "auc")
        and row["selection"] == "default"
    ]
    assert forgotten["n_members"] == len((members - remaining) & test_rows) > 0


@pytest.mark.slow
def test_each_candidate_is_in_one_of_two_shadow_models(shared_run):
    node, stored = shared_run.node, shared_run.stored
    pool = read_examples(stored(node.examples))
    memberships = [
        {row.example_id for row in read_examples(stored(shadow.membership)) if row.side == "member"}
        for shadow in node.twins.shadows
    ]
    assert not memberships[0] & memberships[1]
    assert memberships[0] | memberships[1] == {row.example_id for row in pool}
    for shadow, members in zip(node.twins.shadows, memberships, strict=True):
        realised = read_plan(stored(shadow.plan)).realised()
        assert {name for name, count in realised.items() if count} == members
        assert exposed(stored(shadow.trained)).keys() <= members


@pytest.mark.slow
def test_scores_compare_with_the_twin_and_with_the_shadow_models(shared_run):
    node, stored = shared_run.node, shared_run.stored
    pool = read_examples(stored(node.examples))

    def means(step: Step) -> np.ndarray:
        table = read_statistics(stored(step))
        return np.array([np.mean(table[example.example_id].log_probability) for example in pool])

    inputs = node.scores.inputs
    scores = pq.read_table(stored(node.scores) / "scores.parquet").to_pylist()

    def scored(detector: str, setting: str) -> list[float]:
        rows = {
            row["example_id"]: row["score"]
            for row in scores
            if (row["detector"], row["setting"]) == (detector, setting)
        }
        return [rows[example.example_id] for example in pool]

    target = means(inputs["view-text"])
    np.testing.assert_allclose(
        scored("reference", "-"), target - means(inputs["reference"]), atol=1e-5
    )
    inside = [
        [example.side == "member" for example in read_examples(stored(step))]
        for step in (inputs["0000-membership"], inputs["0001-membership"])
    ]
    shadows = np.stack([means(inputs["0000-shadow"]), means(inputs["0001-shadow"])])
    expected, _ = likelihood_ratios(target, shadows, np.array(inside))
    np.testing.assert_allclose(scored("lira", "-"), expected, atol=1e-4)
