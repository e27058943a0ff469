"""The predicted power matches simulated studies."""

import pytest

from analysis.factors.power import (
    Assumptions,
    auc_variance,
    difference_power,
    needed_members,
)
from inject.keyed import Stream, generator, item_key
from scripts.calibration.factor_studies import ArmsDesign, count_seen, expected_power


@pytest.mark.parametrize(
    "design",
    [
        ArmsDesign(40, (0.63, 0.75)),
        ArmsDesign(40, (0.63, 0.75), 3, 0.03),
    ],
)
def test_power_matches_simulated_studies(design):
    # 300 studies have a standard error of 2.9 points at most.
    seen, expected = count_seen(design, 300), expected_power(design)
    assert seen[0] == pytest.approx(expected[0], abs=0.11)
    assert seen[1] == pytest.approx(expected[1], abs=0.11)


def test_variance_matches_simulated_aucs():
    random = generator(0, Stream.BOOTSTRAP, item_key("test power"))
    members, others = random.normal(size=(4000, 20)) + 1.0, random.normal(size=(4000, 30))
    aucs = (members[:, :, None] > others[:, None, :]).mean(axis=(1, 2))
    assert aucs.var() == pytest.approx(auc_variance(aucs.mean(), 20, 30), rel=0.08)


def test_needed_members_are_the_smallest_sufficient_number():
    assumed = Assumptions(auc=0.65, seed_deviation=0.02)
    for seeds in (1, 5):
        needed = needed_members(seeds, assumed, delta=0.05)
        assert needed is not None
        assert difference_power(0.05, needed, seeds, assumed) >= 0.8
        assert difference_power(0.05, needed - 1, seeds, assumed) < 0.8
