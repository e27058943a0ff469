"""AUC and TPR of a sample against scikit-learn and their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from analysis.intervals.influence import Side, accepted_shares, auc_sample
from analysis.metrics import supports_rate, tpr_name
from tests.analysis.oracles import auc, tpr_at_fpr

scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)
rates = st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.29, 0.5, 0.9])


def sides(*scores: list[float]) -> list[Side]:
    return [Side(np.array(side), np.arange(len(side))) for side in scores]


@given(scores, scores)
def test_auc_matches_scikit_learn_with_many_ties(members, nonmembers):
    truth = [1] * len(members) + [0] * len(nonmembers)
    everyone = np.ones((1, len(members)), dtype=bool)
    value = auc_sample(*sides(members, nonmembers), everyone, 30).value[0]
    assert value == pytest.approx(roc_auc_score(truth, members + nonmembers))
    assert value == pytest.approx(auc(members, nonmembers))


def accepted(members: list[float], nonmembers: list[float], rate: float) -> float:
    everyone = np.ones((1, len(members)), dtype=bool)
    return float(accepted_shares(*sides(members, nonmembers), everyone, rate)[0])


@given(scores, scores, rates)
def test_accepted_members_match_the_best_threshold(members, nonmembers, rate):
    assert accepted(members, nonmembers, rate) == pytest.approx(
        tpr_at_fpr(members, nonmembers, rate)
    )


def test_allowed_false_positives_are_exact_despite_float_rounding():
    # 0.29 * 100 is 28.999… in floats and means 29.
    outside = list(np.arange(100.0))
    assert accepted([71.0], outside, 0.29) == 1
    assert accepted([70.0], outside, 0.29) == 0


def test_a_rate_needs_ten_divided_by_rate_nonmembers():
    assert supports_rate(0.1, 100)
    assert not supports_rate(0.1, 99)
    assert supports_rate(0.001, 10_000)
    assert not supports_rate(0.001, 9_999)


def test_metric_names_keep_the_exact_rate():
    names = [tpr_name(rate) for rate in (0.001, 0.01, 0.05, 0.1)]
    assert names == ["tpr@0.001", "tpr@0.01", "tpr@0.05", "tpr@0.1"]
