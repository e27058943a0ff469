"""The set of detectors that cannot be distinguished from the best."""

import pytest

from analysis.factors.best import best_set
from inject.keyed import Stream, generator, item_key
from scripts.calibration.factor_studies import ArmsDesign, count_best, draw_arms


def _detectors(design, name="best"):
    return draw_arms(design, generator(0, Stream.BOOTSTRAP, item_key(name)))


@pytest.mark.parametrize(
    "design",
    [ArmsDesign(60, (0.65,) * 6), ArmsDesign(60, (0.7, *[0.65] * 5), group=3)],
)
def test_the_set_holds_the_truly_best(design):
    # 150 studies of six equal detectors: a true 95 % has a standard error of 1.8 points.
    held, _ = count_best(design, 150)
    assert held > 0.89


def test_a_detector_and_its_copy_stand_together():
    first, second = _detectors(ArmsDesign(300, (0.8, 0.6)))
    assert best_set([first, first, second], confidence=0.95) == [True, True, False]
