"""Paired differences: bands that cover a family, and the set of possibly best detectors."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel

from analysis.factors.contrasts import best_set, contrasts
from analysis.intervals.numbers import Numbers, join_numbers
from inject.keyed import Stream, generator, item_key
from scripts.calibration.cells.factors import Design, one_contrast
from scripts.calibration.factor_studies import ArmsDesign, count_best, count_contrasts, draw_arms


def difference_of(first, second):
    return join_numbers([first, second]).by_seed().covariance(np.array([[1.0, -1.0]]))


def _arms(design, name="arms"):
    return draw_arms(design, generator(0, Stream.BOOTSTRAP, item_key(name)))


@pytest.mark.parametrize(
    "design",
    [ArmsDesign(60, (0.6, 0.7, 0.8, 0.9), group=3), ArmsDesign(40, (0.5, 0.5, 0.5), 3, 0.03)],
)
def test_a_band_covers_the_whole_family(design):
    family, each = count_contrasts(design, 150)
    assert family > 0.9
    assert each > 0.9


def test_band_is_bonferronis_with_own_degrees_of_freedom():
    arms = _arms(ArmsDesign(60, (0.5, 0.6, 0.7, 0.8), 3, 0.05))
    for arm, contrast in zip(
        arms[1:], contrasts([(arm, arms[0]) for arm in arms[1:]]), strict=True
    ):
        joint = difference_of(arm, arms[0])
        half = student.isf(0.025 / 3, joint.freedom[0]) * joint.error[0]
        assert contrast["high"] - contrast["value"] == pytest.approx(half)


def test_difference_over_seeds_is_a_paired_t_test():
    """Obuchowski and Rockette (1995) with Hillis (2007), by hand for independent rows."""
    arms = _arms(ArmsDesign(60, (0.5, 0.7), 4, 0.05))
    # Each seed has rows of a different dataset.
    separate = [
        Numbers([{str(s): seed[""]} for s, seed in enumerate(arm.seeds)], arm.scale) for arm in arms
    ]
    by_seed = [arm.by_seed().value[:, 0] for arm in arms]
    (contrast,) = contrasts([(separate[1], separate[0])])
    # A paired t test over the seeds.
    ends = ttest_rel(by_seed[1], by_seed[0]).confidence_interval(0.95)
    assert contrast["value"] == pytest.approx((by_seed[1] - by_seed[0]).mean())
    assert (contrast["pointwise_low"], contrast["pointwise_high"]) == pytest.approx(
        (ends.low, ends.high)
    )


def test_a_seed_missing_in_one_arm_is_omitted():
    """Regression: the seed counted as one without groups, so there was no interval."""
    first, second = _arms(ArmsDesign(60, (0.5, 0.7), 4, 0.05))
    lacking = Numbers([{}, *first.seeds[1:]], first.scale)
    (contrast,) = contrasts([(second, lacking)])
    values = [arm.by_seed().value[1:, 0] for arm in (second, first)]
    assert contrast["value"] == pytest.approx((values[0] - values[1]).mean())
    assert (contrast["n_seeds"], contrast["n_members"], contrast["reason"]) == (3, 180, "")
    assert contrast["low"] < contrast["value"] < contrast["high"]


def test_intervals_cover_arms_that_share_half_of_a_seeds_effect():
    """Reduced from scripts/calibration/cells: earlier intervals covered 91 % of these studies."""
    random = np.random.default_rng(0)
    design = Design(60, 3, 0.2)
    studies = [
        one_contrast(random, design=design, aucs=(0.6, 0.9), family=False) for _ in range(200)
    ]
    assert 0.925 <= np.mean([study.low <= study.truth <= study.high for study in studies]) <= 0.985


def test_missing_contrasts_have_a_reason():
    arms = _arms(ArmsDesign(100, (0.5, 0.6)))
    part = arms[0].seeds[0][""]
    few = part._replace(sample=part.sample._replace(groups=np.full((2, 1), 2)))
    rows = contrasts([(arms[1], Numbers([{"": few}], arms[0].scale))])
    assert rows[0]["reason"] == "2 groups on one side"
    rows = contrasts([(arms[1], Numbers([{}], arms[0].scale)), (arms[1], arms[0])])
    assert rows[0]["reason"] == "no seed has both"
    assert not rows[1]["reason"]
    assert contrasts([(arms[0], arms[0])])[0]["reason"] == "the rows do not differ"


def test_pairing_removes_shared_variance():
    arms = _arms(ArmsDesign(200, (0.6, 0.7), together=0.9))
    paired = difference_of(arms[1], arms[0]).covariance[0, 0]
    unpaired = sum(arm.by_seed().covariance(np.ones((1, 1))).covariance[0, 0] for arm in arms)
    assert paired < 0.3 * unpaired


def test_best_set_contains_the_truly_best():
    # 150 studies of six detectors: a true 95 % has a standard error of 1.8 points.
    share, _ = count_best(ArmsDesign(60, (0.7, *[0.65] * 5), group=3), 150)
    assert share > 0.89


def test_a_detector_and_its_copy_are_both_in_the_best_set():
    first, second = _arms(ArmsDesign(300, (0.8, 0.6)), "best")
    assert best_set([first, first, second], confidence=0.95) == [True, True, False]
