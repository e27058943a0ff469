"""The deviation over seeds: coverage with a known truth, and planning limits."""

import numpy as np
import pytest
from scipy.stats import chi2

from analysis.studies.seed_spread import seed_spread
from tests.analysis.studies.simulated import Design, spreads


@pytest.mark.parametrize("seeds", [12, 20])
@pytest.mark.parametrize("deviation", [0.07, 0.16])
def test_interval_covers_the_true_deviation(seeds, deviation):
    design = Design((0.75,), seeds=seeds, members=80, shared=deviation, own=0)
    truth, estimates = design.deviation, spreads(design, 150)
    assert np.mean([spread.low <= truth <= spread.high for spread in estimates]) > 0.9


def test_row_variance_is_removed_on_average():
    design = Design((0.75,), seeds=20, members=80, shared=0.16, own=0)
    squares = [spread.value**2 for spread in spreads(design, 150)]
    assert np.sqrt(np.mean(squares)) == pytest.approx(design.deviation, rel=0.1)


def test_without_row_variance_the_interval_is_chi_square():
    auc = np.array([0.6, 0.65, 0.7, 0.72, 0.61])
    spread = seed_spread(auc, np.zeros(5), confidence=0.95)
    total = auc.std(ddof=1)
    assert spread.value == pytest.approx(total)
    assert spread.low == pytest.approx(total * np.sqrt(4 / chi2.isf(0.025, 4)))
    assert spread.high == pytest.approx(total * np.sqrt(4 / chi2.isf(0.975, 4)))
    assert spread.upper_80 == pytest.approx(total * np.sqrt(4 / chi2.ppf(0.2, 4)))


def test_rows_that_explain_all_leave_0():
    spread = seed_spread(np.array([0.6, 0.61, 0.62]), np.full(3, 0.01), confidence=0.95)
    assert (spread.value, spread.low) == (0, 0)


def test_claim_is_answered_when_the_upper_end_is_below_the_limit():
    spread = seed_spread(np.array([0.6, 0.61, 0.62, 0.63]), np.zeros(4), confidence=0.95)
    assert spread.verdict(spread.high * 1.01) == "answered"
    assert spread.verdict(spread.high) == "not answered"
    assert seed_spread(np.ones(2), np.zeros(2), confidence=0.95).verdict(1.0) == "not answered"
