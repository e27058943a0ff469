"""The ratio rule: which scores have a ratio, and which ratios are suspicious."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.unlearning_audit.ratio import Band, checked_band, score_ratios
from inject.errors import InputError


def test_the_band_is_the_papers_and_open():
    band = Band()
    ratios = np.array([1 / 1.15, 0.87, 1.0, 1.1499, 1.15, 1.2, math.nan])
    assert band.holds(ratios).tolist() == [False, True, True, True, False, False, False]


@given(st.floats(-50, -1e-6), st.floats(-50, -1e-6))
def test_the_ratio_is_that_of_the_unlearned_to_the_original(original: float, unlearned: float):
    found = score_ratios([original], [unlearned])
    assert found.values[0] == unlearned / original
    assert found.reasons == [None]


@pytest.mark.parametrize(
    ("original", "unlearned", "said"),
    [
        (0.0, -1.0, "the score of the original model is zero"),
        (-1.0, 0.0, "the score of the unlearned model is zero"),
        (0.5, -1.0, "original model is positive (0.5)"),
        (-1.0, 2.0, "unlearned model is positive (2)"),
        (math.nan, -1.0, "no score of the original"),
        (-1.0, -math.inf, "not finite"),
    ],
)
def test_other_scores_have_no_ratio_and_a_reason(original: float, unlearned: float, said: str):
    found = score_ratios([original], [unlearned])
    assert math.isnan(found.values[0])
    assert said in found.reasons[0]


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (-1.0, 2.0), (0.5, math.inf)])
def test_a_band_that_holds_nothing_is_refused(ends: tuple[float, float]):
    with pytest.raises(InputError, match="holds no ratio"):
        checked_band(*ends)
