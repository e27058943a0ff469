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
from tests.analysis.studies.simulated import Design, draw_study

STUDIES = 300
_FAMILY = np.array([[-1, 1, 0, 0], [-1, 0, 1, 0], [0.5, 0.5, -0.5, -0.5]])


def _effects(design, measure=lambda auc: auc):
    """Yield the family's effects of many studies."""
    random = np.random.default_rng(7)
    for _ in range(STUDIES):
        values = measure(draw_study(design, random).auc) @ _FAMILY.T
        yield [
            effect_over_seeds(column, confidence=0.95, family=len(_FAMILY)) for column in values.T
        ]


def test_simultaneous_intervals_cover_the_true_differences():
    design = Design((0.5, 0.5, 0.9, 1.3))
    truth = _FAMILY @ design.truth
    held = [
        all(effect.low <= true <= effect.high for effect, true in zip(family, truth, strict=True))
        for family in _effects(design)
    ]
    assert 0.92 < np.mean(held) <= 1


def test_exact_null_moves_auc_in_at_most_5_percent_of_studies():
    moved = [
        any(effect.verdict(0.03) in ("moves AUC", "both") for effect in family)
        for family in _effects(Design((0.8, 0.8, 0.8, 0.8)))
    ]
    # Three standard errors of 5 % in 300 studies are 3.8 points.
    assert np.mean(moved) < 0.05 + 0.038


def test_unbiased_probits_of_few_rows_cover_at_the_null():
    def measure(auc):
        return probits(auc, np.array(40), np.array(120))

    held = [
        all(effect.low <= 0 <= effect.high for effect in family)
        for family in _effects(Design((1.0, 1.0, 1.0, 1.0)), measure)
    ]
    assert np.mean(held) > 0.92


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


_DOSES = np.array([1, 2, 4, 8, 16, 32])
_MEMBERS = np.array([31, 26, 20, 15, 5, 5])


def _dose_aucs(random, scale, power, seeds=8):
    """Return AUCs of members by dose against 400 non-members, with their rows' variances."""
    shift = scale * _DOSES**power + 0.07 * random.normal(size=(seeds, 1))
    others = np.sort(random.normal(size=(seeds, 400)), axis=1)
    auc, variance = np.zeros((2, seeds, len(_DOSES)))
    for s in range(seeds):
        for k, count in enumerate(_MEMBERS):
            members = random.normal(shift[s, k], size=count)
            placed = np.searchsorted(others[s], members) / 400
            auc[s, k] = placed.mean()
            beaten = np.searchsorted(np.sort(members), others[s]) / count
            variance[s, k] = placed.var(ddof=1) / count + beaten.var(ddof=1) / 400
    return auc, variance


@pytest.mark.parametrize("power", [0.6, 0.8])
def test_difference_of_log_doses_is_covered(power):
    random = np.random.default_rng(11)
    scales = 0.33, 0.45
    truth = [log2(np.sqrt(2) * ndtri(0.75) / scale) / power for scale in scales]
    held, differences = [], []
    for _ in range(100):
        doses, notes = zip(
            *(dose_by_seed(*_dose_aucs(random, scale, power), _DOSES) for scale in scales),
            strict=True,
        )
        assert notes == ("", "")
        effect = effect_over_seeds(doses[1] - doses[0], confidence=0.95)
        held.append(effect.low <= truth[1] - truth[0] <= effect.high)
        differences.append(effect.value)
    assert np.mean(held) > 0.87
    assert np.mean(differences) == pytest.approx(truth[1] - truth[0], abs=0.08)


def test_exact_power_law_gives_its_dose_without_error():
    auc = np.tile(ndtr(0.3 * _DOSES[:4] ** 0.7), (3, 1))
    doses, note = dose_by_seed(auc, np.full_like(auc, 1e-3), _DOSES[:4])
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
    auc = np.tile(ndtr(scale * _DOSES[:3] ** 0.7), (4, 1))
    doses, reason = dose_by_seed(auc, np.full_like(auc, 1e-3), _DOSES[:3])
    assert reason == note
    assert np.isnan(doses).all()
