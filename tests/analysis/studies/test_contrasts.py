"""Comparisons within seeds: coverage with a known truth, verdicts, and the dose at AUC 0.75."""

from math import log2

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import ttest_1samp

from analysis.studies.contrasts import (
    Effect,
    dose_by_seed,
    effect_over_seeds,
    from_reported,
    probits,
)
from tests.analysis.studies.simulated import (
    DOSES,
    Design,
    dose_effects,
    family_coverage,
    null_probit_coverage,
    share_that_moves,
)

STUDIES = 200
NULL = Design((0.8, 0.8, 0.8, 0.8))


def test_simultaneous_intervals_cover_the_true_differences():
    assert family_coverage(Design((0.5, 0.5, 0.9, 1.3)), STUDIES) > 0.92


def test_exact_null_moves_auc_in_at_most_5_percent_of_studies():
    # Three standard errors of 5 % in 200 studies are 4.6 points.
    assert share_that_moves(NULL, STUDIES) < 0.05 + 0.046


def test_intervals_of_probits_cover_at_the_null():
    assert null_probit_coverage(NULL, STUDIES) > 0.92


def test_interval_of_one_comparison_is_students():
    effects = np.array([0.02, 0.05, -0.01, 0.04, 0.03])
    ends = ttest_1samp(effects, 0).confidence_interval(0.95)
    effect = effect_over_seeds(effects, confidence=0.95)
    assert (effect.low, effect.high) == pytest.approx((ends.low, ends.high))
    family = effect_over_seeds(effects, confidence=0.95, family=4)
    ends = ttest_1samp(effects, 0).confidence_interval(1 - 0.05 / 4)
    assert (family.low, family.high) == pytest.approx((ends.low, ends.high))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.01, 0.05, "moves AUC"),
        (-0.05, -0.01, "moves AUC"),
        (-0.02, 0.03, "does not matter here"),
        (0.01, 0.02, "both"),
        (-0.03, 0.031, "not told"),
        (0.0, 0.04, "not told"),
    ],
)
def test_verdict_follows_from_the_interval_and_the_margin(low, high, verdict):
    assert Effect((low + high) / 2, low, high).verdict(0.03) == verdict


@pytest.mark.parametrize("effects", [[0.1, 0.2], [], [0.1, 0.1, 0.1]])
def test_too_few_or_equal_seeds_answer_nothing(effects):
    effect = effect_over_seeds(np.array(effects), confidence=0.95)
    assert effect.note
    assert np.isnan(effect.low)
    assert effect.verdict(0.03) == "not answered"


def test_probit_effect_is_reported_from_auc_070():
    effect = from_reported(Effect(0.2, -0.1, 0.5))
    assert effect.value == pytest.approx(ndtr(ndtri(0.7) + 0.2) - 0.7)
    assert effect.low < 0 < effect.high


def test_probits_are_finite_at_aucs_of_0_and_1():
    values = probits(np.array([0.0, 0.7, 1.0]), np.array([10]), np.array([400]))
    assert values == pytest.approx([ndtri(0.05), ndtri(0.7), ndtri(0.95)])


@pytest.mark.parametrize("power", [0.6, 0.8])
def test_difference_of_log_doses_is_covered(power):
    effects, truth = dose_effects(power, 40)
    assert np.mean([effect.low <= truth <= effect.high for effect in effects]) > 0.85
    assert np.mean([effect.value for effect in effects]) == pytest.approx(truth, abs=0.1)


def test_exact_power_law_gives_its_dose_without_error():
    auc = np.tile(ndtr(0.3 * DOSES[:4] ** 0.7), (3, 1))
    doses, note = dose_by_seed(auc, np.full_like(auc, 1e-3), DOSES[:4])
    assert note == ""
    assert doses == pytest.approx(np.full(3, log2(ndtri(0.75) / 0.3) / 0.7), abs=1e-4)


@pytest.mark.parametrize(
    ("scale", "note"),
    [
        (0.02, "more than 32 copies"),
        (0.9, "less than 1 copy"),
        (-0.2, "more than 32 copies"),
        (3.0, "fewer than two doses below AUC 0.98"),
    ],
)
def test_dose_outside_1_to_32_copies_is_a_bound(scale, note):
    auc = np.tile(ndtr(scale * DOSES[:3] ** 0.7), (4, 1))
    doses, reason = dose_by_seed(auc, np.full_like(auc, 1e-3), DOSES[:3])
    assert reason == note
    assert np.isnan(doses).all()
