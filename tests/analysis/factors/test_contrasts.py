"""Paired differences: bands that hold a family, and the set that may be the best."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel

from analysis.factors.contrasts import best_set, contrasts
from analysis.intervals.numbers import Numbers, beside
from inject.keyed import Stream, generator, item_key
from scripts.calibration.cells.factors import Design, one_contrast
from scripts.calibration.factor_studies import ArmsDesign, count_best, count_contrasts, draw_arms


def difference_of(one, other):
    return beside([one, other]).by_seed().covariance(np.array([[1.0, -1.0]]))


def _arms(design, name="arms"):
    return draw_arms(design, generator(0, Stream.BOOTSTRAP, item_key(name)))


@pytest.mark.parametrize(
    "design",
    [ArmsDesign(60, (0.6, 0.7, 0.8, 0.9), group=3), ArmsDesign(40, (0.5, 0.5, 0.5), 3, 0.03)],
)
def test_a_band_holds_the_whole_family(design):
    family, each = count_contrasts(design, 150)
    assert family > 0.9
    assert each > 0.9


def test_a_band_is_bonferronis_and_each_difference_has_its_own_freedom():
    arms = _arms(ArmsDesign(60, (0.5, 0.6, 0.7, 0.8), 3, 0.05))
    for arm, found in zip(arms[1:], contrasts([(arm, arms[0]) for arm in arms[1:]]), strict=True):
        joint = difference_of(arm, arms[0])
        half = student.isf(0.025 / 3, joint.freedom[0]) * joint.error[0]
        assert found["high"] - found["value"] == pytest.approx(half)


def test_a_difference_over_seeds_is_that_of_readers():
    """Obuchowski and Rockette (1995) with Hillis (2007), by hand where rows share nothing."""
    arms = _arms(ArmsDesign(60, (0.5, 0.7), 4, 0.05))
    # Rows of a dataset of each seed's own.
    alone = [
        Numbers([{str(s): seed[""]} for s, seed in enumerate(arm.seeds)], arm.scale) for arm in arms
    ]
    by_seed = [arm.by_seed().value[:, 0] for arm in arms]
    (found,) = contrasts([(alone[1], alone[0])])
    # A paired t test over the seeds.
    ends = ttest_rel(by_seed[1], by_seed[0]).confidence_interval(0.95)
    assert found["value"] == pytest.approx((by_seed[1] - by_seed[0]).mean())
    assert (found["alone_low"], found["alone_high"]) == pytest.approx((ends.low, ends.high))


def test_a_seed_that_one_arm_lacks_is_left_out():
    """There was no interval: the seed counted as one of no groups."""
    one, other = _arms(ArmsDesign(60, (0.5, 0.7), 4, 0.05))
    lacking = Numbers([{}, *one.seeds[1:]], one.scale)
    (found,) = contrasts([(other, lacking)])
    values = [arm.by_seed().value[1:, 0] for arm in (other, one)]
    assert found["value"] == pytest.approx((values[0] - values[1]).mean())
    assert (found["n_seeds"], found["n_members"], found["reason"]) == (3, 180, "")
    assert found["low"] < found["value"] < found["high"]


def test_arms_that_share_half_of_a_seeds_effect_are_held():
    """Reduced from scripts/calibration/cells: of these studies 91 % were held before."""
    random = np.random.default_rng(0)
    design = Design(60, 3, 0.2)
    drawn = [one_contrast(random, design=design, aucs=(0.6, 0.9), family=False) for _ in range(200)]
    assert 0.925 <= np.mean([one.low <= one.truth <= one.high for one in drawn]) <= 0.985


def test_what_cannot_be_told_says_why():
    arms = _arms(ArmsDesign(100, (0.5, 0.6)))
    part = arms[0].seeds[0][""]
    few = part._replace(sample=part.sample._replace(groups=np.full((2, 1), 2)))
    found = contrasts([(arms[1], Numbers([{"": few}], arms[0].scale))])
    assert found[0]["reason"] == "2 groups on one side"
    found = contrasts([(arms[1], Numbers([{}], arms[0].scale)), (arms[1], arms[0])])
    assert found[0]["reason"] == "no seed has both"
    assert not found[1]["reason"]
    assert contrasts([(arms[0], arms[0])])[0]["reason"] == "the rows do not differ"


def test_pairing_takes_out_what_arms_share():
    arms = _arms(ArmsDesign(200, (0.6, 0.7), together=0.9))
    paired = difference_of(arms[1], arms[0]).covariance[0, 0]
    alone = sum(arm.by_seed().covariance(np.ones((1, 1))).covariance[0, 0] for arm in arms)
    assert paired < 0.3 * alone


def test_the_set_holds_the_truly_best():
    # 150 studies of six detectors: a true 95 % has a standard error of 1.8 points.
    held, _ = count_best(ArmsDesign(60, (0.7, *[0.65] * 5), group=3), 150)
    assert held > 0.89


def test_a_detector_and_its_copy_stand_together():
    first, second = _arms(ArmsDesign(300, (0.8, 0.6)), "best")
    assert best_set([first, first, second], confidence=0.95) == [True, True, False]
