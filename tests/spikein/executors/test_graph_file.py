"""The graph as a file: complete, in plain JSON, and built only as the run wrote it."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from inject.errors import SpikeinError
from inject.step import InputProjection, Step
from spikein.executors import graph_file
from spikein.executors.graph_file import GraphFile, read_graph, require_same_code, write_graph
from spikein.pipeline.graph import Graph
from spikein.store.store import Store
from tests.spikein.executors.graphs import fan
from tests.spikein.step_functions import step

NOT_IN_THE_FILE = {"cost", "build"}
"""Estimates of a step, which only `spikein plan` shows."""


def written(tmp_path: Path, *goals: Step) -> GraphFile:
    return write_graph(Graph(goals=goals, name="g"), Store(tmp_path / "store"), tmp_path)


def rich() -> Step:
    """A step with a non-default value in every field."""
    source = step("source", "write", facets={"first": "tests.spikein.step_functions:first_letter"})
    return step(
        "rich",
        "write",
        kind="other",
        settings={"b": [1, (2.5, None)], "a": {"z": True, "y": "ü"}},
        execution={"path": "/somewhere", "order": {"z": 1, "a": 2}},
        inputs={"second": source, "first": source},
        code=("inject.keyed",),
        libraries=("numpy", "unicode"),
        volatile=("log*",),
        protected=True,
        processes=3,
        reads={"first": InputProjection("first", ("value",)), "second": InputProjection()},
        facets={"first": "tests.spikein.step_functions:first_letter"},
    )


def test_a_step_round_trips(tmp_path):
    original = rich()
    steps = read_graph(written(tmp_path, original)).steps
    restored = steps[original.digest]
    assert [*steps] == [step.digest for step in Graph(goals=(original,)).steps]
    assert restored.recipe.identity() == json.loads(json.dumps(original.recipe.identity()))
    assert {
        name: source.digest for name, source in restored.inputs.items()
    } == original.recipe.inputs
    for field in fields(Step):
        if field.name not in NOT_IN_THE_FILE | {"inputs", "settings", "execution"}:
            assert getattr(restored, field.name) == getattr(original, field.name), field.name
    # The order of a mapping may affect a function's output.
    for value, restored_value in zip(original.json_values(), restored.json_values(), strict=True):
        assert json.dumps(value) == json.dumps(restored_value)
    assert [*restored.inputs] == [*original.inputs]
    require_same_code(restored)


def test_the_file_is_private_readable_and_protected_by_its_digest(tmp_path):
    file = written(tmp_path, rich())
    path = Path(file.path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert max(map(len, path.read_text().splitlines())) < 200
    read_graph.cache_clear()
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(SpikeinError, match="not the graph that this run wrote"):
        read_graph(file)


def test_edits_of_the_file_are_refused_unless_they_change_only_execution(tmp_path):
    file = written(tmp_path, *fan(2, 0.5).goals)
    content = json.loads(Path(file.path).read_text())
    record = next(iter(content["steps"].values()))
    record["execution"]["seconds"] = 9.0
    edited = graph_file.parse_graph(json.dumps(content).encode())
    assert next(iter(edited.steps.values())).execution["seconds"] == 9.0
    record["settings"]["label"] = "other"
    with pytest.raises(SpikeinError, match="thing shared is not the one that the run named"):
        graph_file.parse_graph(json.dumps(content).encode())


def test_values_that_are_not_json_are_named_with_step_and_key(tmp_path):
    with pytest.raises(TypeError, match=r"thing s: execution\.a\.b\[0\]: PosixPath"):
        written(tmp_path, step("s", "write", execution={"a": {"b": [Path("x")]}}))


def test_other_code_and_libraries_are_refused_before_building(tmp_path):
    original = rich()
    restored = read_graph(written(tmp_path, original)).steps[original.digest]
    object.__setattr__(restored, "recipe", replace(original.recipe, code="0" * 64))
    with pytest.raises(SpikeinError, match="code of the step other rich is not"):
        require_same_code(restored)
    libraries = {"numpy": "0.1", "unicode": "1"}
    object.__setattr__(restored, "recipe", replace(original.recipe, libraries=libraries))
    with pytest.raises(SpikeinError, match=r"other libraries .* numpy .* \(there 0\.1\)"):
        require_same_code(restored)
