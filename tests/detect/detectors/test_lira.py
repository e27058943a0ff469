"""LiRA against its formula, example by example, and against a manually derived answer."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import digamma, polygamma
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from detect.detector_settings import parse_detectors
from detect.detectors.lira import FEWEST_OWN, likelihood_ratios
from detect.evidence import ShadowModel
from detect.registry import get_detector
from detect.scoring import score_rows
from detect.token_statistics import EMPTY_TEXT, unscored
from tests.detect.evidence_samples import evidence_of, statistics_of


def naive(target, means, inside):
    """One example after the other, with SciPy's normal distribution."""
    indices = range(len(target))
    seen = [[row[i] for row, mask in zip(means, inside, strict=True) if mask[i]] for i in indices]
    not_seen = [
        [row[i] for row, mask in zip(means, inside, strict=True) if not mask[i]] for i in indices
    ]
    own = all(len(seen[i]) >= FEWEST_OWN and len(not_seen[i]) >= FEWEST_OWN for i in indices)
    cells = [*seen, *not_seen]
    squares = sum(np.var(cell) * len(cell) for cell in cells)
    pooled = squares / max(1, sum(len(cell) - 1 for cell in cells))
    if all(len(cell) == 1 for cell in cells):
        pooled = 1.0

    def density(value, cell):
        variance = np.var(cell, ddof=1) if own else pooled
        return norm.logpdf(value, np.mean(cell), math.sqrt(variance))

    return [density(target[i], seen[i]) - density(target[i], not_seen[i]) for i in indices]


@given(
    pairs=st.sampled_from([1, 2, 5, 31, 32, 40]),
    examples=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_score_is_the_ratio_of_two_gaussians(pairs, examples, seed):
    random = np.random.default_rng(seed)
    half = random.random((pairs, examples)) < 0.5
    inside = np.concatenate([half, ~half])
    means = random.normal(-3, 0.5, inside.shape) + 0.7 * inside
    target = random.normal(-3, 1, examples)
    values, variance = likelihood_ratios(target, means, inside)
    assert variance == ("own" if pairs >= FEWEST_OWN else "pooled" if pairs > 1 else "unknown")
    np.testing.assert_allclose(values, naive(target, means, inside), rtol=1e-9, atol=1e-9)


def shadows(*rows):
    """Shadow models of (log-probabilities of each text, membership mask)."""
    return [
        ShadowModel(
            statistics=[
                unscored(EMPTY_TEXT) if values is None else statistics_of(values)
                for values in texts
            ],
            inside=seen,
        )
        for texts, seen in rows
    ]


def test_scores_use_the_mean_over_all_tokens_and_keep_reasons():
    target = [statistics_of([-1.0, -1.0]), statistics_of([-2.0, -4.0]), unscored(EMPTY_TEXT)]
    evidence = evidence_of(
        *target,
        shadows=shadows(
            ([[-1.0, -2.0], [-3.0, -5.0], None], [True, False, True]),
            ([[-2.0, -3.0], [-2.0, -2.0], None], [False, True, False]),
        ),
    )
    lira = get_detector("lira").detector
    (column,) = lira.score(evidence, [lira.parameters()])
    values = [score.value for score in column.scores]
    # Variance 1: half the difference of the squared distances.
    assert values[0] == pytest.approx((1.5**2 - 0.5**2) / 2)
    assert values[1] == pytest.approx((1.0**2 - 1.0**2) / 2)
    assert math.isnan(values[2])
    assert column.scores[2].reason == EMPTY_TEXT
    assert "variance, which is set to 1" in column.notes[0]


def test_one_sided_examples_and_identical_models_have_a_reason():
    (lira,) = parse_detectors("lira")
    one_sided = evidence_of(
        statistics_of([-1.0]), shadows=shadows(([[-1.0]], [True]), ([[-2.0]], [True]))
    )
    (row,) = score_rows(["a"], one_sided, [lira])[0].to_pylist()
    assert row["reason"] == "no shadow model on one side"
    same = shadows(([[-1.0]], [True]), ([[-2.0]], [False]), ([[-1.0]], [True]), ([[-2.0]], [False]))
    table, _ = score_rows(["a"], evidence_of(statistics_of([-1.5]), shadows=same), [lira])
    (row,) = table.to_pylist()
    assert row["reason"] == "the shadow models agree exactly"


def naive_moderated(target, means, inside):
    """One example after the other: its two means by Bayes' rule in matrices (Smyth 2004)."""
    indices = range(len(target))
    cells = [[means[side[:, i], i] for side in (inside, ~inside)] for i in indices]
    freedom = len(means) - 2
    variances = [sum(np.square(c - c.mean()).sum() for c in cell) / freedom for cell in cells]
    e = [
        math.log(max(v, 1e-5 * np.median(variances))) - digamma(freedom / 2) + math.log(freedom / 2)
        for v in variances
    ]
    spread = np.var(e, ddof=1) - polygamma(1, freedom / 2)
    if spread <= 0:
        d0, s0 = math.inf, math.exp(np.mean(e))
    else:
        half = brentq(lambda x, spread=spread: polygamma(1, x) - spread, 1e-6, 1e9)
        d0, s0 = 2 * half, math.exp(np.mean(e) + digamma(half) - math.log(half))
    shrunk = [s0 if math.isinf(d0) else (d0 * s0 + freedom * v) / (d0 + freedom) for v in variances]
    gaps = [cell[0].mean() - cell[1].mean() for cell in cells]
    noise = [v * sum(1 / len(c) for c in cell) for v, cell in zip(shrunk, cells, strict=True)]
    usual, extra = np.mean(gaps), max(np.var(gaps, ddof=1) - np.mean(noise), 1e-12)
    scores = []
    for i in indices:
        # Unknown: the mean outside, and the difference; each model sees one or both.
        seen = np.array([[1.0, 1.0 if saw else 0.0] for saw in inside[:, i]])
        precision = seen.T @ seen / shrunk[i] + np.diag([0.0, 1 / extra])
        pulled = seen.T @ means[:, i] / shrunk[i] + np.array([0.0, usual / extra])
        covariance = np.linalg.inv(precision)
        place = covariance @ pulled
        both = []
        for design_row in (np.array([1.0, 1.0]), np.array([1.0, 0.0])):
            scale = math.sqrt(shrunk[i] + design_row @ covariance @ design_row)
            law = norm if math.isinf(d0) else student(d0 + freedom)
            both.append(law.logpdf((target[i] - design_row @ place) / scale) - math.log(scale))
        scores.append(both[0] - both[1])
    return scores


@given(
    pairs=st.integers(2, 31),
    examples=st.integers(10, 40),
    seed=st.integers(0, 2**32 - 1),
    alike=st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_moderated_variances_and_differences_follow_bayes_and_the_predictive_distribution(
    pairs, examples, seed, alike
):
    random = np.random.default_rng(seed)
    half = random.random((pairs, examples)) < 0.5
    inside = np.concatenate([half, ~half])
    scale = 0.5 if alike else random.gamma(0.7, 1.0, examples) + 0.01
    means = random.normal(-3, scale, inside.shape) + 0.7 * inside
    target = random.normal(-3, 1, examples)
    values, variance = likelihood_ratios(target, means, inside)
    assert variance == "moderated"
    np.testing.assert_allclose(values, naive_moderated(target, means, inside), rtol=1e-4, atol=1e-5)


def simulated(models: int, *, examples: int, seed: int, spread: float = 0.0):
    """A target and shadow models; each example has its own level and variance.

    Membership moves an example by 0.3 on average, with a deviation of `spread` between examples.
    """
    random = np.random.default_rng(seed)
    half = random.random((models // 2, examples)) < 0.5
    inside = np.concatenate([half, ~half])
    member = random.random(examples) < 0.5
    level = random.normal(-3, 1, examples)
    deviation = np.sqrt(0.09 * 4 / random.chisquare(4, examples))
    moved = random.normal(0.3, spread, examples)
    means = level + random.normal(0, deviation, inside.shape) + moved * inside
    target = level + random.normal(0, deviation, examples) + moved * member
    return target, means, inside, member


def test_moderated_scores_are_calibrated_while_unmoderated_ones_are_overconfident():
    """The share of members among examples matches the odds that their scores claim.

    LiRA does not assume a size of the membership effect, so here it varies widely.
    """
    target, means, inside, member = simulated(16, examples=40_000, seed=3, spread=1.0)
    errors = {}
    for rule in ("own", "moderated"):
        values, _ = likelihood_ratios(target, means, inside, rule)
        claimed = 1 / (1 + np.exp(-np.clip(values, -50, 50)))
        bins = np.digitize(claimed, np.linspace(0, 1, 11)[1:-1])
        errors[rule] = max(
            abs(claimed[bins == number].mean() - member[bins == number].mean())
            for number in range(10)
            if (bins == number).sum() > 200
        )
    assert errors["moderated"] < 0.04
    assert errors["own"] > 2 * errors["moderated"]


@pytest.mark.parametrize("models", [4, 8])
def test_few_shadow_models_are_mildly_overconfident(models):
    """With unmoderated variances and differences the excess was 24 and 19 points."""
    claimed, right, plain, areas = [], [], [], []
    for seed in range(20):
        target, means, inside, member = simulated(models, examples=200, seed=seed)
        values, _ = likelihood_ratios(target, means, inside)
        sure = np.abs(values) > math.log(0.85 / 0.15)
        claimed.append(1 / (1 + np.exp(-np.abs(values[sure]))))
        right.append((values[sure] > 0) == member[sure])
        areas.append(roc_auc_score(member, values))
        plain.append(roc_auc_score(member, own_difference(target, means, inside)))
    over = np.concatenate(claimed).mean() - np.concatenate(right).mean()
    assert over < 0.15
    assert np.mean(areas) > np.mean(plain) + 0.01


def own_difference(target, means, inside):
    """Carlini's ratio with one variance per example and unmoderated means."""
    weights = np.stack([inside, ~inside])
    centre = (weights * means).sum(axis=1) / weights.sum(axis=1)
    squares = (weights * (means - centre[:, None]) ** 2).sum(axis=(0, 1)) / (len(means) - 2)
    return (np.square(target - centre[1]) - np.square(target - centre[0])) / squares


def test_note_names_the_variance_and_a_setting_selects_it():
    random = np.random.default_rng(5)
    rows = [statistics_of([-2.0 - item]) for item in random.random(12)]
    models = [
        (
            [[-2.0 - item] for item in random.random(12)],
            [(row + model) % 2 == 0 for row in range(12)],
        )
        for model in range(6)
    ]
    evidence = evidence_of(*rows, shadows=shadows(*models))
    settings = parse_detectors("lira,lira:variance=own,lira:variance=pooled")
    assert [item.text for item in settings] == ["-", "variance=own", "variance=pooled"]
    notes = score_rows([str(row) for row in range(12)], evidence, settings)[1]
    for note, words in zip(
        notes,
        ("are moderated by priors on", "variances of its own", "one variance is pooled"),
        strict=True,
    ):
        assert note.startswith("lira: 6 shadow models:")
        assert words in note


def test_zero_variance_by_chance_is_moderated_and_full_agreement_has_no_score():
    random = np.random.default_rng(6)
    half = random.random((4, 20)) < 0.5
    inside = np.concatenate([half, ~half])
    means = random.normal(-3, 1, inside.shape)
    means[:, 0] = -3.0
    values, variance = likelihood_ratios(np.full(20, -3.0), means, inside)
    assert variance == "moderated"
    assert np.isfinite(values).all()
    same, _ = likelihood_ratios(np.full(20, -3.0), np.full_like(means, -3.0), inside)
    assert np.isnan(same).all()
