"""What the new intervals hold in simulated studies, the level of the test, and edge cases."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from analysis.intervals.clustered import Part, cluster
from analysis.intervals.ends import Scale, find_relative_change
from analysis.intervals.influence import Side, auc_sample, difference, mean_sample
from analysis.intervals.numbers import Numbers
from analysis.unlearning.measures import forget_quality
from analysis.unlearning.verdict import find_position
from scripts.calibration.unlearning import Design, case_coverage, p_values, unlearning_cases

STUDIES = 200
FEWEST = int(binom.ppf(1e-4, STUDIES, 0.93))
"""Intervals that hold 93 % are below it once in ten thousand tests."""
# One of each measure and design, the smallest and the grouped; docs/data/coverage.csv has all.
CASES = {
    f"{case.measure}, {case.design.text()}": case
    for case in unlearning_cases()
    if case.measure.startswith("mean")
    or (case.design.seeds == 1 and case.design.text() != "100 texts, rows alone")
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_interval_holds_the_truth_as_often_as_it_says(name):
    found = case_coverage(CASES[name], STUDIES, "")
    assert found.held >= FEWEST - (STUDIES - found.given)
    assert found.given >= 0.8 * STUDIES


def test_models_alike_are_told_apart_as_often_as_the_level_says():
    ours, _ = p_values(Design(100, 5, (0, 0)), STUDIES)
    assert (ours < 0.05).sum() <= binom.ppf(0.9999, STUDIES, 0.05)


def test_the_p_value_is_that_of_all_swaps():
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(8), 2)
    other = random.normal(size=16)
    one = other + 0.4 * random.normal(size=16) + 0.35
    found, p_value = forget_quality(one, other, groups, permutations=20_000, confidence=0.95)

    def distance(a, b):
        return max(abs((a <= t).mean() - (b <= t).mean()) for t in [*a, *b])

    truth = distance(one, other)
    reached = []
    for swaps in product([False, True], repeat=8):
        swap = np.array(swaps)[groups]
        reached.append(distance(np.where(swap, other, one), np.where(swap, one, other)))
    exact = np.mean(np.array(reached) >= truth - 1e-12)
    assert found.value == pytest.approx(truth)
    assert p_value == pytest.approx(exact, abs=0.012)


def test_equal_models_have_a_p_value_of_one_and_two_groups_none():
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
def test_a_relative_change_lies_in_its_interval_and_never_below_minus_one(inside, outside):
    one, other = (auc_of([row[k] for row in inside], [row[k] for row in outside]) for k in (0, 1))
    found = [cluster([{"": Part(s, np.ones(1))}]) for s in (difference(one, other), one, other)]
    interval = find_relative_change(*found, confidence=0.95)
    if other.value[0] == 0 or np.isnan(interval.low[0]):
        return
    value = one.value[0] / other.value[0] - 1
    assert -1 - 1e-12 <= interval.low[0] <= value + 1e-9
    assert value - 1e-9 <= interval.high[0]


def numbers(values, groups) -> Numbers:
    values, groups = np.asarray(values, float), np.asarray(groups)
    sample = mean_sample(values, groups, np.ones((1, len(values)), bool), int(groups.max()) + 1)
    return Numbers([{"": Part(sample, np.array([float(len(values))]))}], Scale.SLOPE)


def test_a_model_that_is_the_original_stands_at_one_and_the_retrained_one_at_zero():
    random = np.random.default_rng(0)
    groups = np.arange(20)
    retrained, original = random.normal(size=20), 3 + random.normal(size=20)
    models = {"r": numbers(retrained, groups), "o": numbers(original, groups)}
    for who, wanted in (("o", 1.0), ("r", 0.0)):
        found = find_position(models[who], models["r"], models["o"], confidence=0.95)[0]
        assert [found.value, found.low, found.high] == pytest.approx([wanted] * 3, abs=1e-6)
    alike = find_position(models["o"], models["r"], models["r"], confidence=0.95)[0]
    assert np.isnan([alike.value, alike.low]).all()
    assert "indistinguishable" in alike.note
    low, high = (numbers([level, level + 1.0], [0, 1]) for level in (0, 5))
    two_groups = find_position(low, low, high, confidence=0.95)[0]
    assert (two_groups.value, two_groups.reason) == (0, "2 groups")
    assert np.isnan(two_groups.low)
