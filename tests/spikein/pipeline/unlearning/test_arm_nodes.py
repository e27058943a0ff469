"""The section `unlearning` in the graph, before anything runs."""

import pytest

from inject.digest import file_digest
from inject.errors import InputError, InputErrors
from inject.examples.example import EXAMPLES_FILE, OF_EXAMPLES, example_id, write_examples
from inject.step import InputProjection, find_function
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from tests.inject.examples.drawing import plain_row
from tests.spikein.samples import problems, read_checked
from tests.spikein.tiny import graph_of, write_tiny
from train.device import Device
from train.unlearn.job import retained_rows

METHODS = "methods: [gradient_ascent, {method: npo, sweep: {lr: [1.0e-4, 1.0e-3]}}]"
SECTION = f"unlearning={{forget: {{share: 0.5}}, {METHODS}}}"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("unlearning-nodes")).parent


def test_the_section_adds_models_and_leaves_the_arm_unchanged(tiny):
    (without,) = graph_of(tiny, "twins.retrained=0.5").nodes
    graph = graph_of(tiny, SECTION)
    (node,) = graph.nodes
    assert node.trained.digest == without.trained.digest
    assert node.scores.digest == without.scores.digest
    # A share is that of `twins.retrained`: the same sides, the same model.
    assert node.twins.retrained.membership.digest == without.twins.retrained.membership.digest
    assert (
        node.unlearning.model("retrained").trained.digest == without.twins.retrained.trained.digest
    )
    labels = [model.setting.label for model in node.unlearning.unlearned]
    assert labels == ["gradient_ascent", "npo-lr-0.0001", "npo-lr-0.001"]
    goals = {step.digest for step in graph.graph.goals}
    for model in node.unlearning.unlearned:
        assert {model.trained.digest, model.scores.digest} <= goals
        assert model.trained.inputs["original"].digest == node.trained.digest
        assert model.scores.settings["defaults"].keys() == (
            node.unlearning.model("retrained").scores.settings["defaults"].keys()
        )
    assert {node.unlearning.model("retrained").scores.digest} < goals


def test_a_set_by_copies_reads_the_arms_plan_and_another_set_does_not(tiny):
    forget = f"unlearning={{forget: {{copies: [2]}}, {METHODS}}}"
    (node,) = graph_of(tiny, forget).nodes
    membership = node.unlearning.membership
    assert membership.inputs["plan"].digest == node.plan.digest
    assert node.unlearning.model("retrained").plan.digest != node.plan.digest
    (node,) = graph_of(tiny, SECTION).nodes
    assert "plan" not in node.unlearning.membership.inputs


def test_the_retain_set_affects_only_methods_that_read_it(tiny):
    methods = "methods: [gradient_ascent, {method: npo, retain_weight: 1.0}]"
    forget = "forget: {datasets: [fictional], share: 0.5}"
    graphs = [
        graph_of(tiny, f"unlearning={{{forget}, {methods}{more}}}")
        for more in ("", ", retain: {share: 0.5}", ", retain: {copies: [1]}")
    ]
    digests_by_graph = [
        [model.trained.digest for model in graph.nodes[0].unlearning.unlearned] for graph in graphs
    ]
    assert len({digests[0] for digests in digests_by_graph}) == 1
    assert len({digests[1] for digests in digests_by_graph}) == 3


def content_read(step, name: str, folder) -> str:
    """Return the digest of the part of an artifact of examples that a step reads."""
    facet = step.reads.get(name, InputProjection()).facet
    if facet is None:
        return file_digest(folder / EXAMPLES_FILE)
    return find_function(OF_EXAMPLES[facet])(folder)


@pytest.mark.parametrize("share", [True, False])
def test_another_split_changes_a_retain_set_that_is_a_drawn_share(tiny, tmp_path, share):
    """A share is drawn within each split, so a model with the old one would be the wrong one."""
    retain_section = ", retain: {share: 0.5}" if share else ", retain: {datasets: [fictional]}"
    method = "methods: [{method: npo, retain_weight: 1.0}]"
    forget = "forget: {groups: [g0]}"
    (node,) = graph_of(tiny, f"unlearning={{{forget}{retain_section}, {method}}}").nodes
    (model,) = [unlearned.trained for unlearned in node.unlearning.unlearned]
    texts = [f"text {number}" for number in range(40)]
    read_digests, retained_ids = set(), set()
    for splits in (("tune", "test"), ("test", "tune")):
        pool = [
            plain_row(example_id(text), text=text, dataset="fictional", split=splits[at < 13])
            for at, text in enumerate(texts)
        ]
        folder = tmp_path / splits[0]
        folder.mkdir()
        write_examples(folder, pool)
        read_digests.add(content_read(model, "examples", folder))
        retain = node.arm.experiment.unlearning.retain
        rows = retained_rows(pool, pool[:2], retain, seed=0, copies=None)
        retained_ids.add(frozenset(row.example_id for row in rows))
    assert len(read_digests) == len(retained_ids) == (2 if share else 1)


def test_a_list_of_ids_counts_by_its_content(tiny, tmp_path):
    file = tmp_path / "ids.txt"
    digests = []
    for text in ("a\nb\n", "b\na\n", "a\n"):
        file.write_text(text)
        graph = graph_of(tiny, f"unlearning={{forget: {{ids: '{file}'}}, {METHODS}}}")
        digests.append(graph.nodes[0].unlearning.membership.digest)
    assert digests[0] == digests[1] != digests[2]


def test_auto_is_a_number_format_of_the_machine(tiny):
    experiment = read_experiment(tiny / "tiny.yaml", [SECTION])
    formats = [
        [
            model.setting.identity()["settings"]["precision"]
            for model in build_graph(experiment, device=device).nodes[0].unlearning.unlearned
        ]
        for device in (Device("cpu"), Device("cuda"))
    ]
    assert set(formats[0]) == {"float32"}
    assert "auto" not in formats[1]


def test_models_without_a_detector_that_reads_them_are_refused(tiny):
    with pytest.raises(InputError, match="no requested detector looks at a model"):
        graph_of(tiny, SECTION, "detect.detectors=[blind]", "base=null", "train.mode=pretrain")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            [SECTION, "twins.retrained=0.4"],
            "twins.retrained: excludes a share of 0.4, and unlearning.forget selects by share",
        ),
        (["unlearning={forget: {shar: 0.5}, methods: [npo]}"], "Did you mean 'share'"),
        (
            [
                "unlearning={forget: {share: 0.5}, methods: [{method: npo, batch_texts: 5}]}",
                "training_runtime={engine: torchrun, processes: 2}",
            ],
            "unlearning.methods: npo.batch_texts: 5 texts of a step cannot be divided evenly "
            "among 2 processes. Allowed: a multiple of 2. Change batch_texts of the method",
        ),
        (
            ["unlearning={forget: {datasets: [tofu]}, methods: [npo]}"],
            "no contaminant is called 'tofu'. Allowed: fictional",
        ),
        (
            ["unlearning={forget: {copies: [3]}, methods: [npo]}", "copies={levels: [1, 4]}"],
            "unlearning.forget.copies: no member has 3 copies. Allowed: 1, 4",
        ),
    ],
)
def test_contradictions_are_refused_before_anything_runs(overrides, message):
    (problem,) = problems(*overrides)
    assert message in problem


PLUGIN = """
from spikein import UnlearningMethod

METHOD = UnlearningMethod(
    name="mine", loss=lambda batch: -batch.forget.loss, hidden_layer=lambda settings: -1
)
"""


def test_the_block_of_a_method_is_one_of_the_models(tiny, tmp_path, tiny_tokenizer):
    """GPT-2's configuration calls the number of blocks `n_layer`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    path = tiny / "mine.py"
    path.write_text(PLUGIN)
    sizes = {"n_layer": 3, "n_embd": 8, "n_head": 2, "vocab_size": 512, "n_positions": 128}
    GPT2LMHeadModel(GPT2Config(bos_token_id=0, eos_token_id=0, **sizes)).save_pretrained(tmp_path)
    tiny_tokenizer.save_pretrained(tmp_path)
    gpt2 = (f"model={{pretrained: {tmp_path}}}", "base=null")
    for method, refused, model in (
        ("{method: rmu, layer: 0}", None, ()),
        ("{method: rmu, name: deep, sweep: {layer: [0, 2]}}", "deep-layer-2.layer: block 2 is", ()),
        (f"{path}:METHOD", "mine.layer: block -1 is", ()),
        ("{method: rmu, layer: 2}", None, gpt2),
        ("{method: rmu, layer: 3}", "layer: block 3 is", gpt2),
    ):
        section = f"unlearning={{forget: {{share: 0.5}}, methods: [{method}]}}"
        if refused is None:
            assert graph_of(tiny, section, *model).nodes[0].unlearning
            continue
        with pytest.raises(InputError, match=f"{refused} set, but the model has [13]"):
            graph_of(tiny, section, *model)


def test_the_section_is_not_swept():
    with pytest.raises(InputErrors, match="Sweep within a method"):
        read_checked(SECTION, "sweep={unlearning.forget.share: [0.2, 0.5]}")
