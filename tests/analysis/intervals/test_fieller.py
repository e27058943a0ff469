"""Fieller's sets against a search over a fine grid, and their text."""

from math import inf

import numpy as np
import pytest

from analysis.intervals.fieller import ThresholdCrossing, fieller, reach_text

GRID = np.linspace(0, 50, 50_001)


@pytest.mark.parametrize(
    ("intercept", "slope", "spread"),
    [(0, 0.3, 0.05), (0, 0.1, 0.08), (0.2, 0, 0.1), (1.5, 0.2, 0.05), (0.3, -0.2, 0.05)],
)
@pytest.mark.parametrize("shared", [-0.8, 0.0, 0.8])
def test_fieller_set_matches_a_grid_search(intercept, slope, spread, shared):
    covariance = np.array([[0.04, shared * 0.2 * spread], [shared * 0.2 * spread, spread**2]])
    fieller_set = fieller(intercept - 0.6745, slope, covariance, 1.96)
    variance = covariance[0, 0] + 2 * GRID * covariance[0, 1] + GRID**2 * covariance[1, 1]
    within = np.abs(intercept + slope * GRID - 0.6745) <= 1.96 * np.sqrt(variance)
    covered = np.zeros(len(GRID), dtype=bool)
    for low, high in fieller_set.places:
        covered |= (low <= GRID) & (high >= GRID)
    # Rounding decides exactly at a bound.
    assert (covered != within).sum() <= 2 * len(fieller_set.places)


def test_a_flat_line_under_the_level_never_reaches_it():
    assert fieller(-0.67, 0.0, np.eye(2) * 1e-6, 2.0).value == inf
    assert fieller(-0.67, -0.1, np.eye(2) * 1e-9, 2.0).places == ()


def test_text_gives_no_number_beyond_the_measured_range():
    def text_of(value, *places):
        reach = ThresholdCrossing(value, places)
        return reach_text(reach, smallest=1, largest=64, written=lambda x: f"{x:g}")

    assert text_of(12, (5, 30)) == "12 [5, 30]"
    assert text_of(12, (5, 200)) == "12 [5, > 64]"
    assert text_of(12, (5, inf)) == "12 [5, > 64]"
    assert text_of(100, (0, inf)) == "> 64 [any]"
    assert text_of(100, (80, inf)) == "> 64"
    assert text_of(12, (0, 3), (40, inf)) == "12 [≤ 3 or ≥ 40]"
    assert text_of(inf) == "never"
    assert text_of(0) == "< 1"
