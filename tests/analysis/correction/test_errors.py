"""Errors of corrected scores on items whose clean answers are known."""

import numpy as np
import pytest

from analysis.arm import DetectorColumn
from analysis.correction import errors
from analysis.correction.calibration import log_odds
from analysis.correction.errors import OUTCOMES, Items, dataset_errors
from analysis.settings import AnalysisSettings

LOSS = DetectorColumn("loss", "-")
SETTINGS = AnalysisSettings()


def items(random, *, groups=200, rows=1, strength=2.0, gain=0.5, drift=0.0) -> Items:
    """Return items of which half are members; contamination turns wrong answers right.

    `drift` is what training did to the answers of all items.
    """
    group = np.repeat(np.arange(groups), rows)
    member = group % 2 == 0
    shared = np.repeat(random.standard_normal(groups), rows)
    ability = 1 / (1 + np.exp(-0.4 - 0.6 * shared))
    draws = random.random((4, len(group)))
    clean_right = draws[0] < ability
    right = clean_right | (member & (draws[1] < gain)) | (draws[2] < drift)
    outcomes = (right, np.where(member, right, clean_right))
    return Items(
        member=member,
        copies=member.astype(np.int64),
        group=group,
        right={name: each.astype(float) for name, each in zip(OUTCOMES, outcomes, strict=True)},
        clean_right=clean_right.astype(float),
        chance=np.full(len(group), 0.25),
        clean_logit=log_odds(ability),
        scores={LOSS: strength * member + random.standard_normal(len(group))},
    )


def rows(seeds, **more):
    return list(dataset_errors(seeds, SETTINGS, **more))


def find(table, **place):
    return [row for row in table if place.items() <= row.items()]


def test_errors_without_correction_are_the_weighted_gains_of_both_sides():
    pool = items(np.random.default_rng(0), drift=0.1)
    table = rows([pool])
    for outcome, right in pool.right.items():
        gain = right - pool.clean_right
        inside, outside = gain[pool.member].mean(), gain[~pool.member].mean()
        for share in (0.1, 0.3, 0.5):
            (row,) = find(table, outcome=outcome, contaminated_share=share, calibration_items=50,
                          estimator="naive")  # fmt: skip
            assert row["value"] == pytest.approx(share * inside + (1 - share) * outside, abs=0.02)
            assert row["low"] < row["value"] < row["high"]
            assert row["rmse"] >= abs(row["value"])
            assert row["draws"] == 200


def test_a_sharp_detector_corrects_what_a_blind_one_leaves():
    draw = np.random.default_rng(1)
    sharp, blind = (
        rows([items(draw, strength=strength, groups=4000)], draws=50) for strength in (6.0, 0.0)
    )
    place = {"outcome": "hybrid", "contaminated_share": 0.5, "calibration_items": 100}
    for estimator in ("weighted", "hard"):
        (sharp_row,), (blind_row,) = (
            find(table, estimator=estimator, **place) for table in (sharp, blind)
        )
        assert sharp_row["removed"] > 0.7
        assert blind_row["removed"] < 0.4
        assert sharp_row["rmse"] < blind_row["rmse"]


def test_an_inflation_within_noise_has_no_removed_share():
    table = rows([items(np.random.default_rng(2), gain=0.0)])
    assert {row["removed"] for row in table} == {None}


def test_missing_scores_are_counted_and_have_an_estimate():
    pool = items(np.random.default_rng(3))
    scores = pool.scores[LOSS].copy()
    scores[:30] = np.nan
    table = rows([pool._replace(scores={LOSS: scores})])
    assert {row["unscored"] for row in find(table, detector="loss")} == {30}
    assert all(np.isfinite(row["value"]) for row in find(table, detector="loss"))


def test_without_a_base_model_the_accuracy_of_known_non_members_is_imputed():
    pool = items(np.random.default_rng(4), groups=600)
    table = rows([pool._replace(clean_logit=np.full(600, np.nan))])
    (row,) = find(table, estimator="imputed", outcome="hybrid", contaminated_share=0.5,
                  calibration_items=100)  # fmt: skip
    expected = pool.clean_right[~pool.member].mean() - pool.clean_right.mean()
    assert row["value"] == pytest.approx(expected, abs=0.02)


def test_calibration_sets_larger_than_the_pool_have_no_row():
    sizes = {row["calibration_items"] for row in rows([items(np.random.default_rng(5), groups=80)])}
    assert sizes == {10, 20, 50}


def test_seeds_are_averaged():
    draw = np.random.default_rng(6)
    pools = [items(draw) for _ in range(3)]
    place = {"outcome": "hybrid", "calibration_items": 20, "contaminated_share": 0.3,
             "estimator": "naive"}  # fmt: skip
    (row,) = find(rows(pools), **place)
    singles = [find(rows([pool]), **place)[0]["value"] for pool in pools]
    assert row["value"] == pytest.approx(np.mean(singles), abs=0.01)
    assert row["n_seeds"] == 3
    assert row["interval"] == "any seed"


@pytest.mark.parametrize("passages", [1, 3])
def test_intervals_hold_the_error_of_the_population(monkeypatch, passages: int):
    """Known truth: the error in a population of 6,000 groups, of which 60 to 150 are seen."""
    monkeypatch.setattr(errors, "SIZES", (20,))
    monkeypatch.setattr(errors, "SHARES", (0.3,))
    draw = np.random.default_rng(7)
    made = {"rows": passages, "strength": 1.5, "drift": 0.05}
    truth: dict[tuple[str, str], list[float]] = {}
    for _ in range(3):
        for row in rows([items(draw, groups=6000, **made)], draws=50):
            truth.setdefault((row["outcome"], row["estimator"]), []).append(row["value"])
    hits: dict[tuple[str, str], list[bool]] = {}
    for _ in range(120):
        for row in rows([items(draw, groups=150 // passages + 30, **made)], draws=60):
            key = row["outcome"], row["estimator"]
            hits.setdefault(key, []).append(row["low"] <= np.mean(truth[key]) <= row["high"])
    coverage = {key: np.mean(inside) for key, inside in hits.items()}
    # Calibration by ten members is noise that the interval leaves out.
    assert min(coverage.values()) > 0.85, coverage
    assert min(coverage[outcome, "largest_gain"] for outcome in errors.OUTCOMES) > 0.9, coverage
    assert 0.9 < np.mean([*coverage.values()]) < 0.99, coverage
