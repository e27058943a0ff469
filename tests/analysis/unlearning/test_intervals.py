"""Coverage of unlearning intervals in simulated studies, the test's level and edge cases."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from analysis.intervals.clustered import Part, cluster
from analysis.intervals.ends import IntervalMethod, find_relative_change
from analysis.intervals.influence import Side, auc_sample, difference, mean_sample
from analysis.intervals.numbers import Numbers
from analysis.unlearning.measures import forget_quality
from analysis.unlearning.verdict import find_position
from scripts.calibration.unlearning import Design, case_coverage, p_values, unlearning_cases

STUDIES = 200
FEWEST = int(binom.ppf(1e-4, STUDIES, 0.93))
"""Intervals with 93 % coverage fall below it once in ten thousand tests."""
# One case per measure for the smallest and grouped designs; docs/data/coverage.csv has all.
CASES = {
    f"{case.measure}, {case.design.text()}": case
    for case in unlearning_cases()
    if case.measure.startswith("mean")
    or (case.design.seeds == 1 and case.design.text() != "100 texts, rows alone")
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_have_their_stated_coverage(name):
    coverage = case_coverage(CASES[name], STUDIES, "")
    assert coverage.held >= FEWEST - (STUDIES - coverage.given)
    assert coverage.given >= 0.8 * STUDIES


def test_p_values_of_equivalent_models_keep_their_level():
    values, _ = p_values(Design(100, 5, (0, 0)), STUDIES)
    assert (values < 0.05).sum() <= binom.ppf(0.9999, STUDIES, 0.05)


def test_p_value_matches_all_swaps():
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(8), 2)
    other = random.normal(size=16)
    shifted = other + 0.4 * random.normal(size=16) + 0.35
    quality, p_value = forget_quality(shifted, other, groups, permutations=20_000, confidence=0.95)

    def distance(a, b):
        return max(abs((a <= t).mean() - (b <= t).mean()) for t in [*a, *b])

    truth = distance(shifted, other)
    reached = []
    for swaps in product([False, True], repeat=8):
        swap = np.array(swaps)[groups]
        reached.append(distance(np.where(swap, other, shifted), np.where(swap, shifted, other)))
    exact = np.mean(np.array(reached) >= truth - 1e-12)
    assert quality.value == pytest.approx(truth)
    assert p_value == pytest.approx(exact, abs=0.012)


def test_identical_models_have_a_p_value_of_one_and_two_groups_none():
    values = np.arange(12.0)
    same, p_value = forget_quality(values, values, np.arange(12), permutations=99, confidence=0.95)
    assert (same.value, p_value, same.low) == (0, 1, 0)
    pairs = np.arange(12) // 6
    two, p_value = forget_quality(values, values + 1, pairs, permutations=99, confidence=0.95)
    assert np.isnan([two.low, two.high, p_value]).all()
    assert two.value > 0


def auc_of(members, nonmembers):
    groups = np.arange(len(members) + len(nonmembers))
    return auc_sample(
        Side(np.asarray(members, float), groups[: len(members)]),
        Side(np.asarray(nonmembers, float), groups[len(members) :]),
        np.ones((1, len(members)), dtype=bool),
        len(groups),
    )


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=12),
)
def test_relative_change_is_within_its_interval_and_above_minus_one(inside, outside):
    first, second = (
        auc_of([row[k] for row in inside], [row[k] for row in outside]) for k in (0, 1)
    )
    clusters = [
        cluster([{"": Part(s, np.ones(1))}]) for s in (difference(first, second), first, second)
    ]
    interval = find_relative_change(*clusters, confidence=0.95)
    if second.value[0] == 0 or np.isnan(interval.low[0]):
        return
    value = first.value[0] / second.value[0] - 1
    assert -1 - 1e-12 <= interval.low[0] <= value + 1e-9
    assert value - 1e-9 <= interval.high[0]


def numbers(values, groups) -> Numbers:
    values, groups = np.asarray(values, float), np.asarray(groups)
    sample = mean_sample(values, groups, np.ones((1, len(values)), bool), int(groups.max()) + 1)
    return Numbers([{"": Part(sample, np.array([float(len(values))]))}], IntervalMethod.SLOPE)


def test_original_has_position_one_and_retrained_zero():
    random = np.random.default_rng(0)
    groups = np.arange(20)
    retrained, original = random.normal(size=20), 3 + random.normal(size=20)
    models = {"r": numbers(retrained, groups), "o": numbers(original, groups)}
    for key, expected in (("o", 1.0), ("r", 0.0)):
        position = find_position(models[key], models["r"], models["o"], confidence=0.95)[0]
        assert [position.value, position.low, position.high] == pytest.approx(
            [expected] * 3, abs=1e-6
        )
    alike = find_position(models["o"], models["r"], models["r"], confidence=0.95)[0]
    assert np.isnan([alike.value, alike.low]).all()
    assert "indistinguishable" in alike.note
    low, high = (numbers([level, level + 1.0], [0, 1]) for level in (0, 5))
    two_groups = find_position(low, low, high, confidence=0.95)[0]
    assert (two_groups.value, two_groups.reason) == (0, "2 groups")
    assert np.isnan(two_groups.low)
