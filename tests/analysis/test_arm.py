import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.arm import NOT_SCORED, UPPER_BOUNDS, arm_label, find_arm, load_arm
from detect.detector_settings import parse_detectors
from detect.evidence.membership import Shadows
from detect.scores.table import SCHEMA, read_scores, write_scores
from inject.errors import InputError
from tests.analysis.synthetic import make_arm


@pytest.fixture
def arm(tmp_path):
    return make_arm(tmp_path, axes={}, seed=0, effect=0.5, n=16)


def test_detectors_that_read_shadow_models_are_upper_bounds():
    detectors = parse_detectors("all")
    readers = {d.name for d in detectors if any(isinstance(n, Shadows) for n in d.needs)}
    assert readers == UPPER_BOUNDS


def rewrite(arm, change):
    rows = read_scores(arm.scores).to_pylist()
    write_scores(arm.scores, pa.Table.from_pylist(change(rows), schema=SCHEMA), record={})


def test_scores_are_assigned_by_example_and_column_in_any_order(arm):
    expected = load_arm(arm)
    rewrite(arm, lambda rows: rows[:1] + rows[:0:-1])
    shuffled = load_arm(arm)
    for column in expected.columns:
        np.testing.assert_array_equal(
            shuffled.scores[:, shuffled.index[column]], expected.scores[:, expected.index[column]]
        )


def test_a_missing_score_is_unscored_with_a_reason(arm):
    rewrite(arm, lambda rows: rows[1:])
    loaded = load_arm(arm)
    assert loaded.reasons == {(0, loaded.columns[0]): NOT_SCORED}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: [{**rows[0], "example_id": "x"}, *rows[1:]], "not among the examples"),
        (lambda rows: [*rows, rows[0]], "two scores"),
    ],
)
def test_unknown_examples_and_duplicate_scores_are_rejected(arm, change, problem):
    rewrite(arm, change)
    with pytest.raises(InputError, match=problem):
        load_arm(arm)


def test_an_unscored_default_is_rejected(arm):
    wrong = dataclasses.replace(arm, defaults={**arm.defaults, "min_k": "k=0.3"})
    with pytest.raises(InputError, match=r"k=0.3.*was not scored.*k=0.2"):
        load_arm(wrong)


AXES = st.lists(
    st.sampled_from(["train.lr", "base.lr", "copies", "corpus.tokens", "placement"]),
    unique=True,
    max_size=4,
)
VALUES = st.sampled_from(
    ["0.001", "1e-05", "fixed=1", "levels=1-4-8", "poisson=4", "policy=window,between=0.8-1", "5"]
)


@st.composite
def named_arms(draw) -> list[tuple[dict[str, str], int]]:
    """Return arms of one study: the same axes with different values or seeds."""
    keys = draw(AXES)
    arms = st.tuples(st.tuples(*[VALUES] * len(keys)), st.integers(0, 3))
    chosen = draw(st.lists(arms, min_size=1, max_size=6, unique=True))
    return [(dict(zip(keys, values, strict=True)), seed) for values, seed in chosen]


@given(arms=named_arms(), data=st.data())
@settings(max_examples=80, deadline=None)
def test_an_arm_is_found_by_its_parts_in_any_order_and_notation(arms, data):
    """The text is built here: each part in one of four notations, in a random order."""
    labels = [arm_label(axes.items(), seed) for axes, seed in arms]
    assert len(set(labels)) == len(arms)
    at = data.draw(st.integers(0, len(arms) - 1))
    axes, seed = arms[at]
    whole = data.draw(st.booleans()) or {"train.lr", "base.lr"} <= axes.keys()
    sign = data.draw(st.sampled_from([" ", "="]))
    parts = [f"{key if whole else key.split('.')[-1]}{sign}{axes[key]}" for key in axes]
    parts = data.draw(st.permutations([*parts, f"seed{sign}{seed}"]))
    text = data.draw(st.sampled_from([",", ", "])).join(parts)
    assert find_arm(text, labels, place="here") == labels[at]


def test_ambiguous_and_unknown_names_list_the_arms():
    labels = [arm_label({"train.lr": "0.1"}.items(), seed) for seed in (0, 1)]
    assert find_arm("train.lr=0.1,seed=1", labels, place="here") == "lr 0.1, seed 1"
    with pytest.raises(InputError, match=r"names 2 arms.*'lr 0.1, seed 0', 'lr 0.1, seed 1'"):
        find_arm("lr 0.1", labels, place="here")
    assert find_arm("lr 0.1", labels[:1], place="here") == labels[0]
    with pytest.raises(InputError, match=r"no arm is called 'lr 0.2'.*'lr 0.1, seed 0'"):
        find_arm("lr 0.2", labels, place="here")
    with pytest.raises(InputError, match=r"no arm is called 'lr 0\.1'"):
        find_arm("lr 0.1", ["lr 0.1, copies fixed=1"], place="here")
    assert arm_label([("base.seed", "1")], 0) == "base.seed 1, seed 0"
    # Swapped values are another arm.
    crossed = [
        arm_label({"base.lr": base, "train.lr": train}.items())
        for base, train in (("1", "2"), ("2", "1"))
    ]
    assert crossed == ["base.lr 1, train.lr 2", "base.lr 2, train.lr 1"]
    assert find_arm("train.lr=1,base.lr=2", crossed, place="here") == crossed[1]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("lr 0.1, seed 0", ["lr 0.1", "lr 0.2"]),
        ("lr 0.1", ["lr 0.1, seed 0", "lr 0.2, seed 0"]),
        ("seed 0", ["contaminated"]),
        ("contaminated", ["seed 0", "retrained-0.5, seed 0", "twin-seed0"]),
    ],
)
def test_all_commands_accept_the_same_label(text, labels):
    """`validate` and `bundle` name arms over all seeds, `export` names the streams of one seed."""
    assert find_arm(text, labels, place="here") == labels[0]
    with pytest.raises(InputError, match="names 2 arms"):
        find_arm("contaminated", ["seed 0", "seed 1"], place="here")
