"""The regression of placements: against statsmodels, against a known truth, and its refusals."""

import numpy as np
import pytest
import statsmodels.api as sm

from analysis.factors.regression import Placed, fit_placements
from inject.keyed import Stream, generator, item_key
from scripts.calibration.cells.factors import Design, one_coefficient
from scripts.calibration.factor_studies import PlacedDesign, count_coefficients, draw_placements


def _placed(design, name="regression"):
    return draw_placements(design, generator(0, Stream.BOOTSTRAP, item_key(name)))


@pytest.mark.parametrize(
    "design",
    [PlacedDesign(100, 0.15, 0.3), PlacedDesign(60, 0.0, 0.0), PlacedDesign(60, 0.15, 0.3, 3, 0.1)],
)
def test_intervals_hold_the_truth(design):
    dose, axis = count_coefficients(design, 120)
    assert dose > 0.89
    assert axis > 0.86


def test_an_interaction_over_seeds_is_held():
    """Reduced from scripts/calibration/cells: every one of these studies was held before."""
    random = np.random.default_rng(0)
    every = {"design": Design(60, 3, 0.2), "effects": (0.15, 0.2, 0.05), "term": "dose × axis"}
    drawn = [one_coefficient(random, **every) for _ in range(80)]
    assert 0.925 <= np.mean([one.low <= one.truth <= one.high for one in drawn]) <= 0.99


def test_coefficients_are_those_of_estimating_equations():
    placed, groups = _placed(PlacedDesign(150, 0.15, 0.3, group=3))
    found = fit_placements(placed, ["dose", "axis"], groups, confidence=0.95)
    assert not isinstance(found, str)
    x = np.column_stack([np.ones(len(placed.placement)), placed.factors])
    x[:, 1:] -= x[:, 1:].mean(axis=0)
    family = sm.families.Binomial(link=sm.families.links.Probit())
    theirs = sm.GEE(placed.placement, x, groups=placed.group, family=family).fit()
    assert [one.value for one in found[0]] == pytest.approx(theirs.params[1:].tolist(), abs=1e-4)


def test_without_doubt_of_the_non_members_the_errors_are_the_robust_ones():
    placed, groups = _placed(PlacedDesign(150, 0.15, 0.3, group=3))
    # Non-members of one score say the same of every member: they move nothing.
    blocks = tuple(block._replace(others=np.zeros(len(block.others))) for block in placed.blocks)
    found = fit_placements(
        placed._replace(blocks=blocks), ["dose", "axis"], groups, confidence=0.95
    )
    assert not isinstance(found, str)
    x = np.column_stack([np.ones(len(placed.placement)), placed.factors])
    x[:, 1:] -= x[:, 1:].mean(axis=0)
    family = sm.families.Binomial(link=sm.families.links.Probit())
    theirs = sm.GEE(placed.placement, x, groups=placed.group, family=family).fit(
        cov_type="bias_reduced"
    )
    width = [one.high - one.low for one in found[0]]
    # Theirs are normal intervals; ours have Student's t, a few percent wider.
    assert np.array(width) / (2 * 1.96 * theirs.bse[1:]) == pytest.approx(1.02, abs=0.04)


def test_too_few_groups_are_refused():
    placed, groups = _placed(PlacedDesign(24, 0.15, 0.3))
    found = fit_placements(placed, ["dose", "axis"], groups, confidence=0.95)
    assert found == (
        "24 groups of members for 2 coefficients; 10 are needed for each and for the constant"
    )


def test_factors_that_say_the_same_are_refused():
    placed, groups = _placed(PlacedDesign(100, 0.15, 0.3))
    twice = Placed(
        placed.placement,
        np.column_stack([placed.factors[:, 0], 2 * placed.factors[:, 0]]),
        placed.seed,
        placed.group,
        placed.blocks,
    )
    found = fit_placements(twice, ["one", "two"], groups, confidence=0.95)
    assert found == "the factors cannot be told apart"
