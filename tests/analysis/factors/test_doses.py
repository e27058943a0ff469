"""Dose-response lines: values against a known truth, and the coverage of intervals."""

import numpy as np
import pytest
from scipy.stats import norm

from analysis.factors.doses import quantile_cells
from analysis.factors.lines import FittedLine, fit_line
from inject.keyed import Stream, generator, item_key
from scripts.calibration.cells.factors import Design, one_line
from scripts.calibration.factor_studies import LineDesign, count_lines, draw_doses


def _draw(design, name="line"):
    return draw_doses(design, generator(0, Stream.BOOTSTRAP, item_key(name)))


@pytest.mark.parametrize(
    "design",
    [LineDesign(60, 0.3, group=3), LineDesign(60, 0.15, 3, 0.03)],
)
def test_intervals_cover_the_truth(design):
    # 150 studies: a true 95 % has a standard error of 1.8 points.
    counts = count_lines(design, 150)
    assert counts.slope > 0.89
    assert counts.reach > 0.88
    assert counts.refused < 0.11
    assert counts.none < 0.02


@pytest.mark.parametrize(
    ("design", "slope", "reach"),
    [(Design(60, 3, 0.2), 0.2, True), (Design(100, grouped=True), 0.0, False)],
)
def test_intervals_cover_varying_doses_and_unequal_groups(design, slope, reach):
    """Reduced from scripts/calibration/cells: earlier coverage was 90 and 88 %."""
    random = np.random.default_rng(0)
    studies = [one_line(random, design=design, slope=slope, reach=reach) for _ in range(200)]
    assert 0.925 <= np.mean([study.low <= study.truth <= study.high for study in studies]) <= 0.985


def test_a_bent_curve_is_rejected():
    aucs, x = _draw(LineDesign(2000, 0.0))
    value = norm.cdf(np.array([0.0, 1.0, 1.0, 0.0]))[None]
    line = fit_line(aucs._replace(value=value), x)
    assert isinstance(line, FittedLine)
    assert line.misfit_p < 1e-6


def test_doses_share_their_non_members():
    aucs, x = _draw(LineDesign(40, 0.15))
    line = fit_line(aucs, x)
    # The same influence on four disjoint sets of groups: nothing is shared.
    k, groups = aucs.value.shape[1], aucs.influence.shape[2]
    apart = np.zeros((1, k, k * groups))
    for at in range(k):
        apart[0, at, at * groups : (at + 1) * groups] = aucs.influence[0, at]
    other = fit_line(aucs._replace(influence=apart), x)
    assert isinstance(line, FittedLine)
    assert isinstance(other, FittedLine)
    # Variance that all doses share moves the intercept, not the slope.
    assert line.covariance[1, 1] < other.covariance[1, 1]


def test_a_perfect_dose_has_a_finite_position_and_spread():
    aucs, x = _draw(LineDesign(100, 0.15))
    value, influence = aucs.value.copy(), aucs.influence.copy()
    value[0, -1], influence[0, -1] = 1.0, 0.0
    line = fit_line(aucs._replace(value=value, influence=influence), x)
    assert isinstance(line, FittedLine)
    without = fit_line(aucs.part(slice(None), slice(3)), x[:3])
    assert isinstance(without, FittedLine)
    assert line.low < line.slope < line.high
    # It raises the line only slightly, because its position is very uncertain.
    assert line.intercept + 6 * line.slope > without.intercept + 6 * without.slope
    assert np.isfinite(line.covariance).all()


def test_a_dose_missing_in_one_seed_is_omitted():
    aucs, x = _draw(LineDesign(100, 0.15, 2))
    value = aucs.value.copy()
    value[1, 1] = np.nan
    line = fit_line(aucs._replace(value=value), x)
    assert isinstance(line, FittedLine)
    assert line.points.x.tolist() == [x[0], x[2], x[3]]
    assert line.seeds == 2


def test_a_missing_seed_leaves_the_line_intact():
    aucs, x = _draw(LineDesign(100, 0.15, 3))
    value = aucs.value.copy()
    value[1] = np.nan
    line = fit_line(aucs._replace(value=value), x)
    remaining = fit_line(aucs.part(np.array([True, False, True]), slice(None)), x)
    assert isinstance(line, FittedLine)
    assert (line.slope, line.low, line.seeds) == (remaining.slope, remaining.low, 2)


def test_quantile_cells_are_balanced_over_strata():
    random = np.random.default_rng(0)
    strata = np.repeat([1, 2, 3], [40, 20, 12])
    cells = quantile_cells(random.random(72), np.ones(72, dtype=bool), strata)
    assert [[int((cell & (strata == s)).sum()) for s in (1, 2, 3)] for cell in cells] == (
        [[10, 5, 3]] * 4
    )
