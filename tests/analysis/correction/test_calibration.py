"""Platt scaling of many calibration sets at once, against scikit-learn's of one."""

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration

from analysis.correction.calibration import fit_platt, log_odds


def made(draws=40, items=20, seed=0):
    draw = np.random.default_rng(seed)
    positive = np.tile(np.arange(items) < items // 2, (draws, 1))
    return 3 + 5 * (draw.standard_normal((draws, items)) + positive), positive


@pytest.mark.parametrize("items", [10, 100])
def test_every_draw_has_the_probabilities_of_scikit_learn(items: int):
    scores, positive = made(items=items)
    new = np.linspace(-20, 30, 11)
    probabilities = fit_platt(scores, positive, np.ones(scores.shape)).probabilities(new[None])
    for own, draw_scores, labels in zip(probabilities, scores, positive, strict=True):
        one_fit = _SigmoidCalibration().fit(draw_scores, labels.astype(int))
        assert own == pytest.approx(one_fit.predict(new), abs=2e-4)


def test_the_fit_is_a_stationary_point_for_sets_whose_sides_are_apart():
    draw = np.random.default_rng(3)
    positive = np.tile(np.arange(20) < 10, (30, 1))
    scores = np.where(positive, 1e4, 0.0) + draw.standard_normal((30, 20))
    fit = fit_platt(scores, positive, np.ones(scores.shape))
    target = np.where(positive, 11 / 12, 1 / 12)
    residual = target - fit.probabilities(scores)
    assert np.isfinite(fit.slope).all()
    assert np.abs(residual.sum(axis=1)).max() < 1e-6
    assert np.abs((residual * scores).sum(axis=1) / 1e4).max() < 1e-6


def test_an_item_without_score_has_the_share_of_members_and_no_weight():
    scores, positive = made(draws=5)
    lacking = scores.copy()
    lacking[:, 3] = np.nan
    fit = fit_platt(lacking, positive, np.ones(scores.shape))
    fewer = fit_platt(
        *(np.delete(each, 3, axis=1) for each in (scores, positive, np.ones((5, 20))))
    )
    assert fit.probabilities(scores) == pytest.approx(fewer.probabilities(scores), rel=1e-6)
    assert (fit.probabilities(np.full((5, 2), np.nan)) == 0.5).all()


def test_equal_or_missing_scores_give_the_share_of_members():
    positive = np.tile(np.arange(20) < 10, (2, 1))
    for scores in (np.full((2, 20), 7.0), np.full((2, 20), np.nan)):
        fit = fit_platt(scores, positive, np.ones((2, 20)))
        assert fit.probabilities(scores) == pytest.approx(np.full((2, 20), 0.5))


def test_counts_are_repeated_items():
    scores, positive = made(draws=1)
    counts = np.random.default_rng(4).integers(0, 4, scores.shape)
    repeated = [np.repeat(each, counts[0], axis=1) for each in (scores, positive)]
    by_count = fit_platt(scores, positive, counts.astype(float))
    by_rows = fit_platt(*repeated, np.ones(repeated[0].shape))
    for own, other in zip(by_count, by_rows, strict=True):
        assert own == pytest.approx(other, rel=1e-6)


def test_items_outside_the_set_do_not_change_the_fit():
    scores, positive = made(draws=3)
    counts = np.ones((3, 21))
    counts[:, 20] = 0.0
    expected = fit_platt(scores, positive, np.ones(scores.shape))
    for other in (1e3, 1e12, -1e300):
        more = np.hstack([scores, np.full((3, 1), other)])
        fit = fit_platt(more, np.hstack([positive, positive[:, :1]]), counts)
        assert fit.probabilities(scores) == pytest.approx(expected.probabilities(scores), abs=1e-9)


@pytest.mark.parametrize("sigma", [2.0, 6.0])
def test_scores_with_a_heavy_tail_are_fitted_to_the_end(sigma: float):
    standard, positive = made(draws=50, items=60)
    scores = np.exp(sigma * (standard - 3) / 5)
    fit = fit_platt(scores, positive, np.ones(scores.shape))
    residual = np.where(positive, 31 / 32, 1 / 32) - fit.probabilities(scores)
    values = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    assert np.abs(residual.sum(axis=1)).max() < 1e-6
    assert np.abs((residual * values).sum(axis=1)).max() < 1e-6


def test_rounding_of_equal_scores_is_not_a_spread():
    positive = np.tile(np.arange(30) < 12, (1, 1))
    fit = fit_platt(np.full((1, 30), 0.1), positive, np.ones((1, 30)))
    share = np.where(positive, 13 / 14, 1 / 20).mean()
    assert fit.probabilities(np.array([[0.1]])) == pytest.approx(share, abs=1e-6)


def test_log_odds_are_finite_at_the_ends():
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()
    assert log_odds(np.array([0.8])) == pytest.approx(np.log(4))
