"""Steps of all kinds are data: the name of a function and plain JSON, read back by workers."""

import ast
import inspect
import json
from pathlib import Path

import pytest

from inject.source_digest import PACKAGES
from inject.step import Step, find_function
from spikein.executors.graph_file import read_graph, require_same_code, write_graph
from spikein.pipeline.graph import Graph
from spikein.store.store import Store
from tests.detect.taggers import NO_SPACY
from tests.spikein.pipeline.mutations import (
    LOCAL,
    LORA,
    NEIGHBOURS,
    NO_SHADOWS,
    PRETRAINED,
    imports,
    sources,
    unlearning,
    variant,
)
from tests.spikein.pipeline.test_identity import folder, hub, steps

__all__ = ["folder", "hub"]

REPOSITORY = Path(__file__).resolve().parents[3]
SETUPS: dict[str, tuple[str, ...]] = {
    "everything": (),
    "generating": ("detect.generate=true", "contaminants.0.held_out=3", *NO_SHADOWS),
    "shadows": ("detect.detectors=[loss, lira, grad_norm]", "train.checkpoints={{every: 20}}"),
    "frequency": ("detect.frequency={folder}/texts.jsonl",),
    "neighbours": ("detect.detectors=[loss, neighbour]", *NEIGHBOURS, *NO_SHADOWS),
    "words": (
        "detect.word_reference={folder}/a",
        "detect.knowledge_filter={folder}/b",
        "detect.detectors=[loss, 'info_probe:filtered=true']",
        *NO_SHADOWS,
    ),
    "entities": (
        "detect.tagger={folder}/tagger-a",
        "detect.detectors=[loss, 'tag_tab:entities=one_word']",
        *NO_SHADOWS,
    ),
    "orders": ("analysis.dataset_detectors=[exchangeability, ensemble]",),
    "paraphrases": ("analysis.dataset_detectors=all", "detect.neighbours={{model: {folder}/a}}"),
    "variants": variant(LOCAL),
    "pretrained": (*PRETRAINED, *NO_SHADOWS),
    "imported": imports("megatron"),
    "copied tokenizer": ("model.tokenizer={folder}/tok",),
    "docstrings": sources("docstrings"),
    "hub": sources("hub"),
    "lora": LORA,
    "deepspeed": (
        "training_runtime.engine=deepspeed",
        "training_runtime.zero=1",
        "training_runtime.processes=2",
    ),
    "unlearning": unlearning(
        more=", retain: {{share: 0.5}}, relearn: {{steps: [1]}}, conditions: [8bit], "
        "audit: {{detector: loss}}"
    ),
}

OF_GIVEN_MODELS = {"audit_continuations", "compared_weights"}
"""Kinds that only `spikein audit-unlearning` makes, from existing models."""
MAKERS = {"Step", "comparing_step", "asking_step"}


def made_kinds() -> set[str]:
    """The kinds of steps in our source: `Step(kind="…")`, or by `comparing_step`."""
    kinds = set()
    for path in (path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS:
                values = {keyword.arg: keyword.value for keyword in node.keywords}
                kind = values.get("kind")
                if isinstance(kind, ast.Constant):
                    kinds.add(str(kind.value))
    return kinds


@pytest.fixture(params=SETUPS)
def made(request, folder) -> list[Step]:
    """The steps of one graph."""
    if request.param == "entities":
        pytest.importorskip("spacy", reason=NO_SPACY)
    return steps(folder, *SETUPS[request.param])


def test_the_graphs_contain_all_kinds_of_steps(folder):
    pytest.importorskip("spacy", reason=NO_SPACY)
    kinds = {step.kind for setup in SETUPS.values() for step in steps(folder, *setup)}
    assert kinds == made_kinds() - OF_GIVEN_MODELS


def test_functions_and_facets_are_found_by_their_names(made):
    called = {step.function: "context" for step in made if step.function}
    for step in made:
        called |= dict.fromkeys(step.facets.values(), "folder")
        for name, reading in step.reads.items():
            if name in step.inputs and reading.facet is not None:
                assert reading.facet in step.inputs[name].facets, (step.name, name)
    for name, argument in called.items():
        function = find_function(name)
        assert f"{function.__module__}:{function.__qualname__}" == name
        inspect.signature(function).bind(argument)
        assert name.partition(".")[0] in PACKAGES


def test_a_worker_restores_all_steps_with_their_digests(made, tmp_path):
    file = write_graph(Graph(goals=tuple(made)), Store(tmp_path / "store"), tmp_path)
    restored = read_graph(file).steps
    assert [*restored] == [step.digest for step in Graph(goals=tuple(made)).steps]
    for step in made:
        settings_and_execution = step.json_values()
        assert json.loads(json.dumps(settings_and_execution)) == [*settings_and_execution]
        read = restored[step.digest]
        require_same_code(read)
        assert json.dumps(read.json_values()) == json.dumps(step.json_values()), step.name
        assert (read.reads, read.facets) == (dict(step.reads), dict(step.facets)), step.name
        assert (read.protected, read.processes) == (step.protected, step.processes), step.name
