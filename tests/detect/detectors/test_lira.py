"""LiRA against its formula, example by example, and against an answer worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from detect.detector_settings import parse_detectors
from detect.detectors.lira import FEWEST, likelihood_ratios
from detect.evidence import ShadowModel
from detect.registry import get_detector
from detect.scoring import score_rows
from detect.token_statistics import EMPTY_TEXT, unscored
from inject.errors import InputError
from tests.detect.evidence_samples import evidence_of, statistics_of


def test_a_known_answer():
    """Means inside -1 and outside -2, squares 4 · 0.1² on 2 degrees of freedom: variance 0.02."""
    means = np.array([[-0.9], [-1.9], [-1.1], [-2.1]])
    inside = np.array([[True], [False], [True], [False]])
    found = likelihood_ratios(np.array([-1.2]), means, inside)
    # (0.8² − 0.2²) / (2 · 0.02)
    assert found.values == pytest.approx([15.0])
    assert found.variance == "pooled"


def naive(target, means, inside):
    """One example after the other, with a normal distribution from elsewhere."""
    every = range(len(target))
    seen = [[row[i] for row, mask in zip(means, inside, strict=True) if mask[i]] for i in every]
    not_seen = [
        [row[i] for row, mask in zip(means, inside, strict=True) if not mask[i]] for i in every
    ]
    own = all(len(seen[i]) >= FEWEST and len(not_seen[i]) >= FEWEST for i in every)
    cells = [*seen, *not_seen]
    squares = sum(np.var(cell) * len(cell) for cell in cells)
    pooled = squares / max(1, sum(len(cell) - 1 for cell in cells))
    if all(len(cell) == 1 for cell in cells):
        pooled = 1.0

    def density(value, cell):
        variance = np.var(cell, ddof=1) if own else pooled
        return norm.logpdf(value, np.mean(cell), math.sqrt(variance))

    return [density(target[i], seen[i]) - density(target[i], not_seen[i]) for i in every]


@given(
    pairs=st.integers(1, 12),
    examples=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_every_example_has_the_ratio_of_its_two_gaussians(pairs, examples, seed):
    random = np.random.default_rng(seed)
    half = random.random((pairs, examples)) < 0.5
    inside = np.concatenate([half, ~half])
    means = random.normal(-3, 0.5, inside.shape) + 0.7 * inside
    target = random.normal(-3, 1, examples)
    found = likelihood_ratios(target, means, inside)
    assert found.variance == ("own" if pairs >= FEWEST else "pooled" if pairs > 1 else "unknown")
    np.testing.assert_allclose(found.values, naive(target, means, inside), rtol=1e-9, atol=1e-9)


def shadows(*rows):
    """Shadow models of (log-probabilities of each text, who was seen)."""
    return [
        ShadowModel(
            statistics=[
                unscored(EMPTY_TEXT) if one is None else statistics_of(one) for one in texts
            ],
            inside=seen,
        )
        for texts, seen in rows
    ]


def test_scores_are_of_the_mean_over_all_tokens_and_reasons_pass_through():
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
    values = [found.value for found in column.scores]
    # Variance 1: half the difference of the squared distances.
    assert values[0] == pytest.approx((1.5**2 - 0.5**2) / 2)
    assert values[1] == pytest.approx((1.0**2 - 1.0**2) / 2)
    assert math.isnan(values[2])
    assert column.scores[2].reason == EMPTY_TEXT
    assert "variance, which is set to 1" in column.notes[0]


def test_an_example_on_one_side_of_all_models_and_models_that_agree_have_a_reason():
    (lira,) = parse_detectors("lira")
    one_sided = evidence_of(
        statistics_of([-1.0]), shadows=shadows(([[-1.0]], [True]), ([[-2.0]], [True]))
    )
    (row,) = score_rows(["a"], one_sided, [lira]).table.to_pylist()
    assert row["reason"] == "no shadow model on one side"
    same = shadows(([[-1.0]], [True]), ([[-2.0]], [False]), ([[-1.0]], [True]), ([[-2.0]], [False]))
    (row,) = score_rows(["a"], evidence_of(statistics_of([-1.5]), shadows=same), [lira])[
        0
    ].to_pylist()
    assert row["reason"] == "the shadow models agree exactly"


def test_without_shadow_models_it_is_refused():
    with pytest.raises(InputError, match="lira needs shadow models"):
        score_rows(["a"], evidence_of(statistics_of([-1.0])), parse_detectors("lira"))
