"""Missing scores by side: the test, and the AUC at both extremes against all pairs."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from analysis.arm import load_arm
from analysis.compared_rows import missing_scores
from analysis.results import analyse
from tests.analysis.oracles import auc
from tests.analysis.synthetic import FAST, make_arm


def test_the_extremes_are_those_of_scores_put_at_either_end():
    random = np.random.default_rng(0)
    member = np.arange(30) < 12
    scores = random.normal(size=30) + member
    gone = np.array([0, 3, 14, 20, 21])
    holes = scores.copy()
    holes[gone] = np.nan
    found = missing_scores("surp", "k=1", holes, member)
    assert found is not None
    low, high = scores.copy(), scores.copy()
    low[gone] = np.where(member[gone], -99.0, 99.0)
    high[gone] = -low[gone]
    assert found.lowest == pytest.approx(auc(low[member], low[~member]))
    assert found.highest == pytest.approx(auc(high[member], high[~member]))
    assert found.lowest < auc(scores[member], scores[~member]) < found.highest
    assert (found.members_missing, found.nonmembers_missing) == (2, 3)


def test_the_test_is_fishers():
    """Of 40 missing scores among 200 rows, 8 are members': SURP's default, scaled down."""
    member = np.arange(200) < 100
    scores = np.zeros(200)
    scores[:8] = scores[100:132] = np.nan
    found = missing_scores("surp", "-", scores, member)
    assert found is not None
    chances = hypergeom(200, 40, 100).pmf(np.arange(41))
    expected = chances[chances <= chances[8] * (1 + 1e-7)].sum()
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    assert found.unlike
    assert found.sentence().startswith("scores are missing of 8% of the members and 32% of the")


def test_an_analysis_says_whose_scores_are_missing(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, unscored={"surp": 30}, n=60)
    analysis = analyse([arm], FAST)
    found = [one for place in analysis.unscored for one in place.missing if one.detector == "surp"]
    loaded = load_arm(arm)
    assert found
    assert all(one.nonmembers_missing == 0 and one.members_missing == 30 for one in found)
    assert found[0].members == (loaded.test & loaded.member & (loaded.dataset == "fictional")).sum()
    assert found[0].unlike
