"""Missing scores by side: the test, and the AUC at both extremes against all pairs."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from analysis.arm import load_arm
from analysis.compared_rows import missing_scores
from analysis.results import analyse
from tests.analysis.oracles import auc
from tests.analysis.synthetic import FAST, make_arm


def test_extremes_match_scores_placed_at_either_end():
    random = np.random.default_rng(0)
    member = np.arange(30) < 12
    scores = random.normal(size=30) + member
    gone = np.array([0, 3, 14, 20, 21])
    holes = scores.copy()
    holes[gone] = np.nan
    missing = missing_scores("surp", "k=1", holes, member)
    assert missing is not None
    low, high = scores.copy(), scores.copy()
    low[gone] = np.where(member[gone], -99.0, 99.0)
    high[gone] = -low[gone]
    assert missing.lowest == pytest.approx(auc(low[member], low[~member]))
    assert missing.highest == pytest.approx(auc(high[member], high[~member]))
    assert missing.lowest < auc(scores[member], scores[~member]) < missing.highest
    assert (missing.members_missing, missing.nonmembers_missing) == (2, 3)


def test_missingness_test_is_fishers():
    """Of 40 missing scores among 200 rows, 8 are members': SURP's default, scaled down."""
    member = np.arange(200) < 100
    scores = np.zeros(200)
    scores[:8] = scores[100:132] = np.nan
    missing = missing_scores("surp", "-", scores, member)
    assert missing is not None
    chances = hypergeom(200, 40, 100).pmf(np.arange(41))
    expected = chances[chances <= chances[8] * (1 + 1e-7)].sum()
    assert missing.p_value == pytest.approx(expected, rel=1e-9)
    assert missing.unlike
    assert missing.sentence().startswith("scores are missing of 8% of the members and 32% of the")


def test_analysis_reports_missing_scores_by_side(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, unscored={"surp": 30}, n=60)
    analysis = analyse([arm], FAST)
    entries = [e for part in analysis.unscored for e in part.missing if e.detector == "surp"]
    loaded = load_arm(arm)
    assert entries
    assert all(entry.nonmembers_missing == 0 and entry.members_missing == 30 for entry in entries)
    assert (
        entries[0].members == (loaded.test & loaded.member & (loaded.dataset == "fictional")).sum()
    )
    assert entries[0].unlike
