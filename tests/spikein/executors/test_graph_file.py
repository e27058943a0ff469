"""The graph as a file: it says everything, in plain JSON, and only what the run wrote is built."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from inject.errors import SpikeinError
from inject.step import Reading, Step
from spikein.executors import graph_file
from spikein.executors.graph_file import GraphFile, read_graph, require_same_code, write_graph
from spikein.pipeline.graph import Graph
from spikein.store.store import Store
from tests.spikein.executors.graphs import fan
from tests.spikein.step_functions import step

NOT_IN_THE_FILE = {"cost", "build"}
"""What is expected of a step, which only `spikein plan` says."""


def written(tmp_path: Path, *goals: Step) -> GraphFile:
    return write_graph(Graph(goals=goals, name="g"), Store(tmp_path / "store"), tmp_path)


def rich() -> Step:
    """A step with a value of its own in every field."""
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
        reads={"first": Reading("first", ("value",)), "second": Reading()},
        facets={"first": "tests.spikein.step_functions:first_letter"},
    )


def test_a_step_comes_back_as_it_was_written(tmp_path):
    one = rich()
    steps = read_graph(written(tmp_path, one)).steps
    found = steps[one.digest]
    assert [*steps] == [given.digest for given in Graph(goals=(one,)).steps]
    assert found.recipe.identity() == json.loads(json.dumps(one.recipe.identity()))
    assert {name: given.digest for name, given in found.inputs.items()} == one.recipe.inputs
    for field in fields(Step):
        if field.name not in NOT_IN_THE_FILE | {"inputs", "settings", "execution"}:
            assert getattr(found, field.name) == getattr(one, field.name), field.name
    # The order of a mapping may show in what a function writes.
    for given, back in zip(one.given(), found.given(), strict=True):
        assert json.dumps(given) == json.dumps(back)
    assert [*found.inputs] == [*one.inputs]
    require_same_code(found)


def test_the_file_is_for_its_user_alone_and_is_read_by_a_person_and_by_no_other_bytes(tmp_path):
    file = written(tmp_path, rich())
    path = Path(file.path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert max(map(len, path.read_text().splitlines())) < 200
    read_graph.cache_clear()
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(SpikeinError, match="not the graph that this run wrote"):
        read_graph(file)


def test_what_is_edited_in_the_file_is_refused_unless_it_decides_nothing(tmp_path):
    file = written(tmp_path, *fan(2, 0.5).goals)
    found = json.loads(Path(file.path).read_text())
    record = next(iter(found["steps"].values()))
    record["execution"]["seconds"] = 9.0
    edited = graph_file.parse_graph(json.dumps(found).encode())
    assert next(iter(edited.steps.values())).execution["seconds"] == 9.0
    record["settings"]["label"] = "other"
    with pytest.raises(SpikeinError, match="thing shared is not the one that the run named"):
        graph_file.parse_graph(json.dumps(found).encode())


def test_what_is_no_json_is_named_with_its_step_and_its_key(tmp_path):
    with pytest.raises(TypeError, match=r"thing s: execution\.a\.b\[0\]: PosixPath"):
        written(tmp_path, step("s", "write", execution={"a": {"b": [Path("x")]}}))


def test_code_and_libraries_of_another_kind_are_refused_before_anything_is_built(tmp_path):
    one = rich()
    found = read_graph(written(tmp_path, one)).steps[one.digest]
    object.__setattr__(found, "recipe", replace(one.recipe, code="0" * 64))
    with pytest.raises(SpikeinError, match="code of the step other rich is not"):
        require_same_code(found)
    libraries = {"numpy": "0.1", "unicode": "1"}
    object.__setattr__(found, "recipe", replace(one.recipe, libraries=libraries))
    with pytest.raises(SpikeinError, match=r"other libraries .* numpy .* \(there 0\.1\)"):
        require_same_code(found)
