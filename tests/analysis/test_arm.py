import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from analysis.arm import NOT_SCORED, UPPER_BOUNDS, Column, axis_column, load_arm
from detect.detector_settings import parse_detectors
from detect.needs import Shadows
from detect.scoring import SCHEMA, read_scores, write_scores
from inject.errors import InputError
from tests.analysis.synthetic import make_arm


@pytest.fixture
def arm(tmp_path):
    return make_arm(tmp_path, axes={}, seed=0, effect=0.5, n=16)


def test_who_reads_shadow_models_is_an_upper_bound():
    settings = parse_detectors("all")
    readers = {one.name for one in settings if any(isinstance(n, Shadows) for n in one.needs)}
    assert readers == UPPER_BOUNDS


def rewrite(arm, change):
    rows = read_scores(arm.scores).to_pylist()
    write_scores(arm.scores, pa.Table.from_pylist(change(rows), schema=SCHEMA), record={})


def test_scores_land_at_their_example_and_column_in_any_order(arm):
    expected = load_arm(arm)
    rewrite(arm, lambda rows: rows[:1] + rows[:0:-1])
    shuffled = load_arm(arm)
    for column in expected.columns:
        np.testing.assert_array_equal(
            shuffled.scores[:, shuffled.index[column]], expected.scores[:, expected.index[column]]
        )


def test_columns_keep_the_order_of_the_grid_and_the_default_comes_first(arm):
    loaded = load_arm(arm)
    assert [c.setting for c in loaded.columns if c.detector == "min_k"] == [
        "k=0.1",
        "k=0.2",
        "k=0.5",
    ]
    assert loaded.grid("min_k")[0] == Column("min_k", "k=0.2")


def test_a_missing_score_is_unscored_with_a_reason(arm):
    rewrite(arm, lambda rows: rows[1:])
    loaded = load_arm(arm)
    assert loaded.reasons == {(0, loaded.columns[0]): NOT_SCORED}


def test_scores_of_strangers_are_refused(arm):
    rewrite(arm, lambda rows: [{**rows[0], "example_id": "somebody"}, *rows[1:]])
    with pytest.raises(InputError, match="not among the examples"):
        load_arm(arm)


def test_two_scores_for_one_setting_are_refused(arm):
    rewrite(arm, lambda rows: [*rows, rows[0]])
    with pytest.raises(InputError, match="two scores"):
        load_arm(arm)


def test_a_default_that_was_not_scored_is_refused(arm):
    wrong = dataclasses.replace(arm, defaults={**arm.defaults, "min_k": "k=0.3"})
    with pytest.raises(InputError, match=r"k=0.3.*was not scored.*k=0.2"):
        load_arm(wrong)


def test_an_axis_never_shadows_a_column_of_the_tables():
    assert axis_column("train.lr") == "train.lr"
    assert axis_column("copies") == "sweep.copies"
    assert axis_column("model") == "sweep.model"
