import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.intervals.bootstrap import (
    Bounds,
    combine_seeds,
    draw_weights,
    percentile_bounds,
    placement_values,
    widen_at_limits,
)
from tests.analysis.oracles import auc


def weights_of(n_members, n_nonmembers, *, replicates=200, group_size=1, seed=0):
    n = n_members + n_nonmembers
    strata = ["m"] * n_members + ["n"] * n_nonmembers
    groups = [f"{row // group_size}" for row in range(n)]
    drawn = draw_weights(strata, groups, replicates=replicates, seed=seed)
    return drawn[:n_members], drawn[n_members:]


def test_weights_resample_whole_groups_and_keep_their_number():
    strata = ["a"] * 12 + ["b"] * 6
    groups = [str(row // 3) for row in range(18)]
    weights = draw_weights(strata, groups, replicates=50, seed=1)
    assert (weights[:, 0] == 1).all()
    assert (weights[0::3] == weights[1::3]).all()
    assert (weights[0::3] == weights[2::3]).all()
    assert (weights[:12].sum(axis=0) == 12).all()
    assert (weights[12:].sum(axis=0) == 6).all()
    assert weights[:, 1:].std() > 0.5


def test_weights_depend_on_seed_cluster_and_stratum_but_not_on_other_strata():
    one = draw_weights(["a"] * 9, [str(i) for i in range(9)], replicates=20, seed=3)
    both = draw_weights(["z"] * 4 + ["a"] * 9, [str(i) for i in range(13)], replicates=20, seed=3)
    named = draw_weights(["a"] * 9, [str(i) for i in range(4, 13)], replicates=20, seed=3)
    assert both[4:].shape == one.shape
    assert sorted(map(tuple, both[4:].tolist())) == sorted(map(tuple, named.tolist()))
    again = draw_weights(["a"] * 9, [str(i) for i in range(9)], replicates=20, seed=3)
    assert (again == one).all()
    for other in ({"seed": 4}, {"seed": 3, "cluster": "1"}):
        drawn = draw_weights(["a"] * 9, [str(i) for i in range(9)], replicates=20, **other)
        assert (drawn != one).any()


@settings(max_examples=30)
@given(
    st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=12),
    st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=12),
)
def test_every_replicate_equals_the_metric_of_the_repeated_rows(members, nonmembers):
    inside, outside = np.array(members), np.array(nonmembers)
    member_weights, nonmember_weights = weights_of(len(members), len(nonmembers), replicates=8)
    placement = placement_values(inside, outside, nonmember_weights)
    values = (placement.below * member_weights).sum(axis=0) / member_weights.sum(axis=0)
    for column in range(9):
        again = np.repeat(inside, member_weights[:, column].astype(int))
        against = np.repeat(outside, nonmember_weights[:, column].astype(int))
        assert values[column] == pytest.approx(auc(again, against))


def test_seeds_that_disagree_widen_the_interval():
    random = np.random.default_rng(1)
    inner = 0.02 * random.normal(size=(3, 1001))
    alike = combine_seeds(0.7 + inner, seed=0)
    unlike = combine_seeds(np.array([[0.6], [0.7], [0.8]]) + inner, seed=0)
    assert unlike[0] == pytest.approx(alike[0], abs=1e-9)
    narrow = percentile_bounds(alike[None], confidence=0.95)
    wide = percentile_bounds(unlike[None], confidence=0.95)
    assert wide.high[0] - wide.low[0] > 3 * (narrow.high[0] - narrow.low[0])


def test_one_seed_changes_nothing_and_a_seed_without_value_is_left_out():
    replicates = np.random.default_rng(2).normal(size=(1, 11))
    assert (combine_seeds(replicates, seed=0) == replicates[0]).all()
    pair = np.vstack([replicates[0], np.full(11, np.nan)])
    assert combine_seeds(pair, seed=0)[0] == replicates[0, 0]


def test_an_interval_without_width_away_from_the_limits_is_no_interval():
    bounds = widen_at_limits(
        np.array([0.7]),
        Bounds(np.array([0.7]), np.array([0.7])),
        np.array([50]),
        confidence=0.95,
    )
    assert np.isnan(bounds.low[0])
    assert np.isnan(bounds.high[0])
