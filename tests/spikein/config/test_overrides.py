"""Overrides and variables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject.errors import InputError
from spikein.config.overrides import apply_overrides, escape, interpolate
from spikein.config.yaml_document import parse_document

KEYS = ("name", "train", "contaminants", "sweep", "variables", "copies")
TEXT = """\
variables: {data: here, size: 5}
train: {lr: 1}
copies: {poisson: 2}
contaminants: [{path: "${data}/x"}, {members: "${size}"}]
sweep: {train.seed: [1, 2]}
"""


def applied(*overrides: str):
    return apply_overrides(parse_document(TEXT, name="f.yaml"), overrides, keys=KEYS)


def test_dotted_keys_and_list_indexes_are_applied():
    document, problems = applied("train.lr=1e-3", "contaminants.0.members=50", "train.new.deep=x")
    assert not problems
    assert document.values["train"] == {"lr": 1e-3, "new": {"deep": "x"}}
    assert document.values["contaminants"][0] == {"path": "${data}/x", "members": 50}
    assert document.place(("train", "lr")) == "override train.lr=1e-3"
    assert document.place(("contaminants", 0, "path")) == "f.yaml:4"


def test_the_later_override_wins_and_the_file_stays_unchanged():
    original = parse_document(TEXT, name="f.yaml")
    document, _ = apply_overrides(original, ["train.lr=2", "train.lr=3"], keys=KEYS)
    assert document.values["train"]["lr"] == 3
    assert original.values["train"]["lr"] == 1


def test_a_name_that_is_not_a_key_is_a_declared_or_used_variable():
    for override in ("data=there", "variables.data=there"):
        document, problems = applied(override)
        assert not problems
        assert interpolate(document)[0].values["contaminants"][0]["path"] == "there/x"
    used = parse_document("name: ${who}", name="f")
    document, problems = apply_overrides(used, ["who=a=b"], keys=KEYS)
    assert not problems
    assert interpolate(document)[0].values["name"] == "a=b"


def test_sweep_keys_are_dotted_themselves():
    document, problems = applied("sweep.train.lr=[1e-3, 1e-2]")
    assert not problems
    assert document.values["sweep"] == {"train.seed": [1, 2], "train.lr": [1e-3, 1e-2]}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train", "not an override"),
        ("train..lr=3", "not an override"),
        ("trian.lr=3", "Did you mean 'train'"),
        ("dat=x", "Did you mean 'data'"),
        ("contaminants.2.members=1", r"list of 2.*Allowed: contaminants.0 to contaminants.1"),
        ("train.lr.deep=1", "single value"),
        ("train.lr=[1", "not valid YAML"),
        ("train.seed=4", r"swept.*sweep.train.seed"),
    ],
)
def test_bad_overrides_are_refused(override, message):
    _, problems = applied(override)
    assert len(problems) == 1
    with pytest.raises(InputError, match=message):
        raise problems[0]


def test_settings_of_a_command_have_no_variables():
    _, problems = apply_overrides(parse_document("{}", name="f"), ["foo=1"], keys=("device",))
    assert "there is no setting 'foo'. Allowed: device." in str(problems[0])


def test_a_whole_reference_keeps_its_type_and_a_part_is_written_out():
    document, problems = interpolate(
        parse_document(
            "variables: {n: 3, yes: true}\na: ${n}\nb: x${n}\nc: ${yes}\nd: '${yes}!'", name="f"
        )
    )
    assert not problems
    assert [document.values[key] for key in "abcd"] == [3, "x3", True, "true!"]


def test_unknown_variables_are_all_named():
    document = parse_document("variables: {data: x}\na: ${dat}\nb: ['${other}']", name="f.yaml")
    _, problems = interpolate(document)
    assert [problem.where for problem in problems] == ["f.yaml:2", "f.yaml:3"]
    assert "Did you mean 'data'" in str(problems[0])


@pytest.mark.parametrize("variable", ["v: '${x}'", "'a b': x", "1: x"])
def test_variables_have_names_and_name_no_variables(variable):
    _, problems = interpolate(parse_document(f"variables: {{{variable}}}", name="f"))
    assert len(problems) == 1


@given(st.text(alphabet="$${}ab", max_size=12))
def test_escaped_texts_round_trip(text):
    document = parse_document("variables: {a: A}", name="f")
    raised = type(document)(values={**document.values, "x": escape(text)}, places={}, name="f")
    result, problems = interpolate(raised)
    assert not problems
    assert result.values["x"] == text
