"""The estimators of accuracy without contamination, against numbers worked by hand."""

import numpy as np
import pytest

from analysis.correction.estimators import (
    THRESHOLDS,
    below_threshold,
    estimate,
    item_influence,
    score_free_terms,
    score_terms,
)

RIGHT = np.array([[1.0, 1.0, 0.0, 1.0]])
MEMBER = np.array([[0.9, 0.1, 0.5, 0.2]])
CLEAN = np.array([[0.3, 0.6, 0.4, 0.7]])
ONES = np.ones((1, 4))


def all_terms(right, member, clean, counts):
    return {**score_free_terms(right, clean, counts), **score_terms(right, member, clean, counts)}


def test_estimates_are_those_worked_by_hand():
    values = {
        name: float(estimate(terms)[0])
        for name, terms in all_terms(RIGHT, MEMBER, CLEAN, ONES).items()
    }
    assert values["naive"] == pytest.approx(0.75)
    assert values["weighted"] == pytest.approx(1.8 / 2.3)
    assert values["hard"] == pytest.approx(2 / 3)
    assert values["imputed"] == pytest.approx(0.5)
    assert values["combined"] == pytest.approx(2.47 / 4)


def test_the_oracle_is_the_accuracy_on_true_non_members():
    truth = np.array([[True, False, False, True]])
    terms = score_free_terms(RIGHT, CLEAN, ONES, truth)
    assert estimate(terms["oracle"])[0] == pytest.approx(0.5)


def gain_by_hand(right, member):
    """Every threshold in turn, as ConTAM defines the gain."""
    best, choice = 0.0, right.mean()
    for step in range(1, THRESHOLDS + 1):
        threshold = member.min() + (member.max() - member.min()) * step / THRESHOLDS
        below = member <= threshold + 1e-12
        if below.sum() < 0.1 * len(member):
            continue
        z = (right.mean() - right[below].mean()) / (right.std() / np.sqrt(below.sum()))
        if z > best + 1e-12:
            best, choice = z, right[below].mean()
    return choice


def test_the_threshold_of_largest_gain_is_found_by_trying_all():
    draw = np.random.default_rng(0)
    member = draw.random((50, 83))
    right = (draw.random(member.shape) < 0.4 + 0.4 * member).astype(float)
    terms = score_terms(right, member, member, np.ones(member.shape))["largest_gain"]
    expected = [gain_by_hand(*rows) for rows in zip(right, member, strict=True)]
    assert estimate(terms) == pytest.approx(expected)


def test_without_a_gain_all_items_are_below_the_threshold():
    right = np.array([[1.0, 1.0, 0.0, 0.0]])
    assert below_threshold(right, np.array([[0.1, 0.2, 0.8, 0.9]]), ONES).all()
    assert below_threshold(right, np.full((1, 4), 0.5), ONES).all()


def test_items_that_all_count_as_members_leave_no_estimate():
    terms = score_terms(RIGHT, np.ones((1, 4)), CLEAN, ONES)
    assert np.isnan(estimate(terms["weighted"])).all()
    assert np.isnan(estimate(terms["hard"])).all()


def test_counts_are_repeated_items():
    draw = np.random.default_rng(1)
    right, member, clean = (draw.random((1, 40)).round(1) for _ in range(3))
    counts = draw.integers(0, 4, (1, 40))
    repeated = [np.repeat(values, counts[0], axis=1) for values in (right, member, clean)]
    counted = all_terms(right, member, clean, counts.astype(float))
    for name, terms in all_terms(*repeated, np.ones(repeated[0].shape)).items():
        assert estimate(counted[name]) == pytest.approx(estimate(terms)), name


def test_influence_is_the_derivative_by_an_items_count():
    draw = np.random.default_rng(2)
    right, member, clean = (draw.random((1, 30)) for _ in range(3))
    step = 1e-6
    for name, terms in all_terms(right, member, clean, np.ones((1, 30))).items():
        value = estimate(terms)
        slopes = item_influence(terms, value)[0]
        for at in range(30):
            more = terms.weights.copy()
            more[0, at] *= 1 + step
            slope = (estimate(terms._replace(weights=more)) - value)[0] / step
            assert slopes[at] == pytest.approx(slope, abs=1e-5), name
