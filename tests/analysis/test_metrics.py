import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

from analysis.metrics import allowed_false_positives, auc, roc, supports_rate, tpr_at_fpr, tpr_name

scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)
rates = st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.29, 0.5, 0.9])


@given(scores, scores)
def test_auc_agrees_with_scikit_learn_under_many_ties(members, nonmembers):
    truth = [1] * len(members) + [0] * len(nonmembers)
    assert auc(members, nonmembers) == pytest.approx(roc_auc_score(truth, members + nonmembers))


@given(scores, scores)
def test_auc_counts_pairs(members, nonmembers):
    pairs = [(m > n) + 0.5 * (m == n) for m in members for n in nonmembers]
    assert auc(members, nonmembers) == pytest.approx(np.mean(pairs))


@given(scores, scores, rates)
def test_tpr_is_the_largest_over_all_thresholds(members, nonmembers, rate):
    inside, outside = np.array(members), np.array(nonmembers)
    best = 0.0
    for threshold in [*members, *nonmembers, np.inf]:
        if (outside >= threshold).sum() <= rate * len(outside) + 1e-9:
            best = max(best, (inside >= threshold).mean())
    assert tpr_at_fpr(members, nonmembers, rate) == pytest.approx(best)


@given(scores, scores)
def test_roc_has_the_points_of_scikit_learn(members, nonmembers):
    truth = [1] * len(members) + [0] * len(nonmembers)
    false, true, _ = roc_curve(truth, members + nonmembers, drop_intermediate=False)
    curve = roc(members, nonmembers)
    np.testing.assert_allclose(curve.false_positive_rate, false)
    np.testing.assert_allclose(curve.true_positive_rate, true)


def test_an_empty_side_has_no_auc_and_no_tpr():
    assert np.isnan(auc([], [1.0]))
    assert np.isnan(auc([1.0], []))
    assert np.isnan(tpr_at_fpr([], [1.0], 0.1))


def test_allowed_false_positives_is_exact_where_floats_are_not():
    assert allowed_false_positives(0.29, 100) == 29
    assert allowed_false_positives(0.05, 199) == 9


def test_a_rate_needs_ten_over_it_nonmembers():
    assert supports_rate(0.1, 100)
    assert not supports_rate(0.1, 99)
    assert supports_rate(0.001, 10_000)
    assert not supports_rate(0.001, 9_999)


def test_metric_names_keep_the_exact_rate():
    assert [tpr_name(rate) for rate in (0.001, 0.01, 0.05, 0.1)] == [
        "tpr@0.001",
        "tpr@0.01",
        "tpr@0.05",
        "tpr@0.1",
    ]
