"""The quantile of the largest of several t statistics, against tables and simulation."""

import numpy as np
import pytest
from scipy.stats import t

from analysis.intervals.max_t import max_t_quantile


def test_one_number_has_students_quantile():
    influence = np.random.default_rng(0).normal(size=(1, 50))
    found = max_t_quantile(influence, 12, confidence=0.95)
    assert found == pytest.approx(t.ppf(0.975, 12), rel=0.03)


def test_equal_numbers_cost_nothing_and_unlike_ones_cost_sidak():
    random = np.random.default_rng(1)
    one = random.normal(size=(1, 400))
    alike = np.repeat(one, 20, axis=0)
    unlike = np.kron(np.eye(20), np.ones((1, 20)))
    same = max_t_quantile(one, 1000, confidence=0.95)
    assert max_t_quantile(alike, 1000, confidence=0.95) == pytest.approx(same, rel=0.03)
    sidak = t.ppf((1 + 0.95 ** (1 / 20)) / 2, 1000)
    assert max_t_quantile(unlike, 1000, confidence=0.95) == pytest.approx(sidak, rel=0.03)


def test_a_number_without_influence_is_left_out():
    influence = np.vstack([np.random.default_rng(2).normal(size=(2, 30)), np.zeros((1, 30))])
    both = max_t_quantile(influence[:2], 30, confidence=0.95)
    assert max_t_quantile(influence, 30, confidence=0.95) == both
