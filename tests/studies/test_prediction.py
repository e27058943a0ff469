"""Predictions of a law: their file, and the verdict on them."""

import json

import numpy as np
import pytest
from scipy.stats import t

from inject.errors import InputError
from scripts.studies.laws import LAWS, Design, fit_law
from scripts.studies.prediction import Prediction, judge_prediction, observed_aucs, predict_aucs
from scripts.studies.prediction_file import (
    FittedPoint,
    PredictionFile,
    read_predictions,
    write_predictions,
)
from tests.studies.test_laws import TERMS, exact_cells, noisy

COPIES = (1, 2, 4, 8)


def predicted(without, auc=None) -> Prediction:
    """Return a prediction at two numbers of copies, of seeds 0, 1, …"""
    aucs = np.broadcast_to(np.asarray(without, dtype=float)[:, None], (len(without), 2))
    value = np.mean(without) if auc is None else auc
    return Prediction(
        detector="min_k", law="power law", terms={}, fitted=20, left_out=1, misfit=1.0,
        copies=(1, 2), seeds=tuple(range(len(without))), auc=(value, value),
        low=(0.6, 0.6), high=(0.8, 0.8), without=tuple(map(tuple, aucs.tolist())),
    )  # fmt: skip


def observed(values):
    return np.broadcast_to(np.asarray(values, dtype=float)[:, None], (len(values), 2))


def content(**changes) -> PredictionFile:
    point = FittedPoint(
        arm="size 1m", detector="min_k", parameters=1e6, rate=1e-3, copies=2, value=0.7, low=0.6,
        high=0.8,
    )  # fmt: skip
    values = {
        "made": "2026-11-28T10:00:00+00:00", "version": "0.2.0", "run": "dose-1", "inputs": {},
        "parameters": 15.4e6, "rate": 2e-3, "predictions": (predicted([0.7, 0.71, 0.69]),),
        "points": (point,),
    }  # fmt: skip
    return PredictionFile(**{**values, **changes})


def test_prediction_is_the_law_at_the_left_out_arm():
    law = fit_law(noisy(exact_cells(), 0.02))
    prediction = predict_aucs("min_k", law, COPIES, parameters=16e6, rate=2e-3)
    probit, without = law.probits(Design.of(COPIES, 16e6, 2e-3))
    scale, gamma, size, rate = law.terms
    effect = scale * np.array(COPIES) ** gamma * 16**size * 2**rate
    assert probit == pytest.approx(effect / np.sqrt(2))
    assert (np.array(prediction.low) < np.array(prediction.auc)).all()
    assert np.array(prediction.without).shape == without.shape == (5, 4)
    assert prediction.terms["γ"] == tuple(law.estimates()["γ"][:3])


def test_exact_law_predicts_exactly():
    truth = np.array(TERMS["power law"])
    law = fit_law(exact_cells())
    prediction = predict_aucs("min_k", law, COPIES, parameters=16e6, rate=2e-3)
    expected = LAWS["power law"].probit(truth, Design.of(COPIES, 16e6, 2e-3))
    assert law.probits(Design.of(COPIES, 16e6, 2e-3))[0] == pytest.approx(expected, abs=1e-4)
    assert prediction.low == pytest.approx(prediction.high, abs=1e-4)


def test_interval_of_the_difference_matches_the_jackknife_by_hand():
    without, values = np.array([0.70, 0.72, 0.71, 0.69]), np.array([0.66, 0.70, 0.74, 0.68])
    verdict = judge_prediction(predicted(without, 0.705), observed(values), range(4))
    gaps = without - [np.delete(values, at).mean() for at in range(4)]
    error = np.sqrt(3 / 4 * ((gaps - gaps.mean()) ** 2).sum())
    assert verdict.paired
    assert verdict.difference.value == pytest.approx(0.705 - values.mean())
    half = verdict.difference.high - verdict.difference.value
    assert half == pytest.approx(t.ppf(0.975, 3) * error)


def test_luck_of_a_seed_that_both_share_cancels():
    luck = np.array([0.03, -0.02, 0.01, -0.02])
    prediction = predicted((luck.sum() - luck) / 3 + 0.7)
    verdict = judge_prediction(prediction, observed(0.7 + luck), range(4))
    assert verdict.difference.low == pytest.approx(verdict.difference.high, abs=1e-9)
    others = judge_prediction(prediction, observed(0.7 + luck), (0, 1, 2, 9))
    assert not others.paired
    error = luck.std(ddof=1) / 2
    half = others.difference.high - others.difference.value
    assert half == pytest.approx(t.ppf(0.975, 3) * np.hypot(error, error))


def test_order_of_the_seeds_does_not_matter():
    values = np.array([0.66, 0.70, 0.74, 0.68])
    prediction = predicted([0.70, 0.72, 0.71, 0.69])
    first = judge_prediction(prediction, observed(values), range(4))
    second = judge_prediction(prediction, observed(values[::-1]), (3, 2, 1, 0))
    assert first.difference[:3] == pytest.approx(second.difference[:3])


@pytest.mark.parametrize(
    ("gap", "spread", "text"),
    [
        (0.00, 0.001, "predicted"),
        (0.03, 0.02, "predicted and refuted"),
        (0.10, 0.02, "refuted"),
        (-0.10, 0.02, "refuted"),
        (0.05, 0.06, "open"),
        (0.00, 0.10, "open"),
    ],
)
def test_verdict_follows_from_the_interval(gap, spread, text):
    deviation = spread * np.sqrt(4) / t.ppf(0.975, 3)
    values = 0.7 - gap + deviation * np.array([1, -1, 1, -1]) * np.sqrt(3 / 4)
    verdict = judge_prediction(predicted([0.7] * 4), observed(values), range(4))
    half = verdict.difference.high - verdict.difference.value
    assert (half, verdict.difference.value) == (pytest.approx(spread), pytest.approx(gap))
    assert verdict.text == text


def test_two_seeds_support_no_verdict():
    with pytest.raises(InputError, match="has 2 seeds"):
        judge_prediction(predicted([0.7] * 4), observed([0.7, 0.7]), (0, 1))


def test_arm_without_a_predicted_count_is_named():
    cells = exact_cells().part(exact_cells().parameters == 2e6)
    assert observed_aucs(cells, (8, 1), place="arm")[0].tolist() == cells.auc[0, [3, 0]].tolist()
    with pytest.raises(InputError, match=r"runs/x: has no AUC of members with 3 or 5 copies.*16"):
        observed_aucs(cells, (1, 3, 5), place="runs/x")


def test_file_of_predictions_round_trip(tmp_path):
    path = tmp_path / "prediction.json"
    write_predictions(path, content())
    assert read_predictions(path) == content()
    assert len(json.loads(path.read_text())["digest"]) == 64


def test_prediction_is_written_once(tmp_path):
    path = tmp_path / "prediction.json"
    write_predictions(path, content())
    before = path.read_text()
    with pytest.raises(InputError, match="a prediction is written once"):
        write_predictions(path, content(rate=1e-3))
    assert path.read_text() == before


@pytest.mark.parametrize("value", ["0.7", "15400000.0", "0.002", '"dose-1"', "10:00:00"])
def test_changed_prediction_is_refused(tmp_path, value):
    path = tmp_path / "prediction.json"
    write_predictions(path, content())
    text = path.read_text()
    assert value in text
    changed = {"0.7": "0.8", "15400000.0": "1.0", "0.002": "0.004", '"dose-1"': '"dose-2"'}
    path.write_text(text.replace(value, changed.get(value, "11:00:00"), 1))
    with pytest.raises(InputError, match="was changed after it was written"):
        read_predictions(path)


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"format": 2}', "3"])
def test_other_files_are_not_predictions(tmp_path, text):
    path = tmp_path / "prediction.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a file of predictions"):
        read_predictions(path)
    with pytest.raises(InputError, match="is not a file of predictions"):
        read_predictions(tmp_path / "none.json")
