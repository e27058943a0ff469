"""Fieller's sets against a search over a fine grid, and their words."""

from math import inf

import numpy as np
import pytest

from analysis.intervals.fieller import Reach, fieller, reach_text

GRID = np.linspace(0, 50, 50_001)


@pytest.mark.parametrize(
    ("intercept", "slope", "spread"),
    [(0, 0.3, 0.05), (0, 0.1, 0.08), (0.2, 0, 0.1), (1.5, 0.2, 0.05), (0.3, -0.2, 0.05)],
)
@pytest.mark.parametrize("shared", [-0.8, 0.0, 0.8])
def test_the_set_is_where_the_line_is_close_to_the_level(intercept, slope, spread, shared):
    covariance = np.array([[0.04, shared * 0.2 * spread], [shared * 0.2 * spread, spread**2]])
    found = fieller(intercept, slope, covariance, 0.6745, 1.96)
    variance = covariance[0, 0] + 2 * GRID * covariance[0, 1] + GRID**2 * covariance[1, 1]
    within = np.abs(intercept + slope * GRID - 0.6745) <= 1.96 * np.sqrt(variance)
    said = np.zeros(len(GRID), dtype=bool)
    for low, high in found.places:
        said |= (low <= GRID) & (high >= GRID)
    # At an end itself rounding decides.
    assert (said != within).sum() <= 2 * len(found.places)


def test_a_flat_line_under_the_level_never_reaches_it():
    assert fieller(0.0, 0.0, np.eye(2) * 1e-6, 0.67, 2.0).value == inf
    assert fieller(0.0, -0.1, np.eye(2) * 1e-9, 0.67, 2.0).places == ()


def test_words_give_no_number_beyond_what_was_measured():
    def say(value, *places):
        found = Reach(value, places)
        return reach_text(found, smallest=1, largest=64, written=lambda x: f"{x:g}")

    assert say(12, (5, 30)) == "12 [5, 30]"
    assert say(12, (5, 200)) == "12 [5, > 64]"
    assert say(12, (5, inf)) == "12 [5, > 64]"
    assert say(100, (0, inf)) == "> 64 [any]"
    assert say(100, (80, inf)) == "> 64"
    assert say(12, (0, 3), (40, inf)) == "12 [≤ 3 or ≥ 40]"
    assert say(inf) == "never"
    assert say(0) == "< 1"
