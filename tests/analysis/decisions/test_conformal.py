"""Conformal p-values and Benjamini-Hochberg: by counting, and by simulation with known truth."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.decisions.flagged import benjamini_hochberg, conformal_p_values
from inject.errors import InputError

SCORES = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0]), min_size=1, max_size=20)


@given(scores=SCORES, held_out=SCORES)
def test_p_values_count_held_out_scores_as_high(scores, held_out):
    p_values = conformal_p_values(scores, held_out)
    for score, value in zip(scores, p_values, strict=True):
        assert value == (1 + sum(held_out_score >= score for held_out_score in held_out)) / (
            1 + len(held_out)
        )


@given(p=st.lists(st.floats(0.001, 1), min_size=1, max_size=25), level=st.floats(0.01, 0.5))
@example(p=[0.25, 0.25, 0.41966348597948355], level=0.41966348597948355)
def test_benjamini_hochberg_picks_the_largest_allowed_set(p, level):
    # A p-value that is on the line but for the last bit counts as on it.
    allowed = level * (1 + 1e-12)
    largest = max(
        (k for k in range(1, len(p) + 1) if sorted(p)[k - 1] <= allowed * k / len(p)), default=0
    )
    limit = sorted(p)[largest - 1] if largest else -1.0
    assert benjamini_hochberg(p, level).tolist() == [value <= limit for value in p]


def test_unscored_rows_are_neither_picked_nor_counted():
    p_values = conformal_p_values([math.nan, 5.0], [1.0, math.nan, 2.0])
    assert math.isnan(p_values[0])
    assert p_values[1] == 1 / 3
    few = benjamini_hochberg([0.04, math.nan, math.nan, math.nan], 0.05)
    assert few.tolist() == [True, False, False, False]
    assert not benjamini_hochberg([math.nan], 0.05).any()


def test_missing_calibration_rows_and_invalid_levels_are_rejected():
    with pytest.raises(InputError, match="no held-out row"):
        conformal_p_values([1.0], [math.nan])
    for level in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InputError, match="false-discovery level"):
            benjamini_hochberg([0.5], level)


@pytest.mark.parametrize("members", [0, 40, 150])
def test_share_of_wrong_picks_stays_below_the_level(members):
    """Known truth: 200 texts, some of them members with higher scores; 300 held-out rows."""
    draw = np.random.default_rng(members)
    level, runs, texts = 0.2, 600, 200
    wrong, members_found = [], []
    for _ in range(runs):
        scores = draw.standard_normal(texts)
        scores[:members] += 2.5
        picked = benjamini_hochberg(
            conformal_p_values(scores, draw.standard_normal(300)).tolist(), level
        )
        wrong.append(picked[members:].sum() / max(1, picked.sum()))
        members_found.append(picked[:members].mean() if members else 0.0)
    allowed = level * (texts - members) / texts
    assert np.mean(wrong) <= allowed + 3 * np.std(wrong) / np.sqrt(runs)
    if members:
        assert np.mean(members_found) > 0.5
        # The bound is nearly reached, so a rule that picked more would fail here.
        assert np.mean(wrong) > 0.6 * allowed
