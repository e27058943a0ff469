"""A number with its interval has the same format everywhere."""

from math import nan

import pytest

from analysis.intervals.estimate import Estimate
from analysis.unit import ABSENT, AUC, DIFFERENCE, NOTHING, PERCENT, POINTS

WIDE = Estimate(0.5, 0.25, 0.75, "this model; not to be trusted: 3 groups", 12, 9)
SURE = Estimate(-0.0246, -0.04, -0.01, "any seed", 12, 9)


def test_text_has_unit_sign_and_spacing():
    assert AUC.text(0.5, 0.25, 0.75) == "AUC 0.50 [0.25, 0.75]"
    assert POINTS.text(*SURE[:3]) == "−2.5 points [−4.0, −1.0]"
    assert DIFFERENCE.text(*SURE[:3]) == "−0.025 [−0.040, −0.010]"
    assert (PERCENT.number(0.256), AUC.number(nan)) == ("26", NOTHING)


def test_entries_and_dots_share_numbers_and_doubt_marks():
    entry, dot = AUC.entry(WIDE), AUC.dot("loss", WIDE)
    assert (entry.text, entry.ends) == ("0.50", "[0.25, 0.75]†")
    assert (dot.text, dot.doubtful) == ("0.50", True)
    assert dot.hover == "loss: AUC 0.50 [0.25, 0.75] · 12 members, 9 non-members"
    assert POINTS.entry(SURE).strong
    assert not POINTS.entry(WIDE._replace(low=-0.1)).strong
    numbers = {"value": -2.46, "low": -4.0, "high": -1.0}
    assert POINTS.dot("loss", SURE).numbers() == pytest.approx(numbers)


def test_unmeasured_values_are_absent_and_missing_intervals_give_no_dot():
    pointwise = WIDE._replace(low=nan, high=nan)
    assert AUC.entry(None) is ABSENT
    assert AUC.entry(pointwise, lacking="n too small").text == "n too small"
    assert AUC.dot("loss", pointwise) is None
