"""Paired differences: bands that hold a family, p-values, and what has no interval."""

import numpy as np
import pytest

from analysis.factors.contrasts import contrasts, difference_of, largest_statistics
from analysis.factors.joint import combine
from inject.keyed import Stream, generator, item_key
from scripts.calibration.factor_studies import ArmsDesign, count_contrasts, draw_arms


def _arms(design, name="arms"):
    return draw_arms(design, generator(0, Stream.BOOTSTRAP, item_key(name)))


@pytest.mark.parametrize(
    "design",
    [
        ArmsDesign(60, (0.5, 0.5, 0.5, 0.5)),
        ArmsDesign(60, (0.6, 0.7, 0.8, 0.9), group=3),
        ArmsDesign(40, (0.5, 0.5, 0.5), 3, 0.03),
    ],
)
def test_a_band_holds_the_whole_family(design):
    family, each = count_contrasts(design, 150)
    assert family > 0.9
    assert each > 0.9


def test_pairing_takes_out_what_arms_share():
    arms = _arms(ArmsDesign(200, (0.6, 0.7), together=0.9))
    paired = difference_of(arms[1], arms[0]).covariance[0, 0]
    alone = sum(combine(arm, np.ones((1, 1))).covariance[0, 0] for arm in arms)
    assert paired < 0.3 * alone


def test_a_band_is_wider_than_the_interval_of_one():
    arms = _arms(ArmsDesign(100, (0.5, 0.6, 0.7)))
    for found in contrasts([(arm, arms[0]) for arm in arms[1:]]):
        assert found.low < found.alone_low < found.value < found.alone_high < found.high


def test_one_difference_is_a_family_of_its_own():
    arms = _arms(ArmsDesign(200, (0.5, 0.6)))
    found = contrasts([(arms[1], arms[0])])[0]
    assert found.high - found.value == pytest.approx(found.alone_high - found.value, rel=0.03)


def test_p_values_agree_with_the_band():
    for number in range(30):
        arms = _arms(ArmsDesign(40, (0.5, 0.6, 0.65)), f"agree {number}")
        for found in contrasts([(arm, arms[0]) for arm in arms[1:]]):
            outside = found.low > 0 or found.high < 0
            assert outside == (found.p_value < 0.05) or abs(found.p_value - 0.05) < 0.003


def test_equal_statistics_cost_as_much_as_one():
    one = np.ones((1, 50))
    single = np.quantile(largest_statistics(one, 30.0), 0.95)
    same = np.quantile(largest_statistics(np.repeat(one, 20, axis=0), 30.0), 0.95)
    apart = np.quantile(largest_statistics(np.eye(20), 30.0), 0.95)
    assert same == pytest.approx(single, rel=0.03)
    assert apart > 1.3 * single


def test_what_cannot_be_told_says_why():
    arms = _arms(ArmsDesign(100, (0.5, 0.6)))
    few = arms[0]._replace(groups=np.full((1, 1), 2))
    assert contrasts([(arms[1], few)])[0].reason == "2 groups on one side"
    none = arms[0]._replace(value=np.full((1, 1), np.nan))
    found = contrasts([(arms[1], none), (arms[1], arms[0])])
    assert found[0].reason == "no seed has both"
    assert not found[1].reason
    assert contrasts([(arms[0], arms[0])])[0].reason == "the rows do not differ"
