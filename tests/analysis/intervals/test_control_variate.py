"""The base model as a control variate: its weight, its correction and the coverage."""

import numpy as np
import pytest

from analysis.intervals.clustered import Part, cluster
from analysis.intervals.influence import Side, auc_sample
from analysis.intervals.numbers import adjust, control_weights
from scripts.calibration.adjusted import Pair, studies_of
from scripts.calibration.coverage import coverage
from tests.analysis.oracles import auc


def aucs(scores, member):
    """Return the AUC of one seed in which each row is a group."""
    number = np.arange(len(scores))
    sides = (Side(scores[rows], number[rows]) for rows in (member, ~member))
    sample = auc_sample(*sides, np.ones((1, int(member.sum())), dtype=bool), len(scores))
    return [{"": Part(sample, np.ones(1))}]


@pytest.fixture(scope="module")
def models():
    random = np.random.default_rng(0)
    member = np.arange(60) < 25
    base = random.normal(size=60)
    return 0.9 * base + 0.4 * random.normal(size=60) + member, base, member


def placements(scores, member):
    """Return DeLong's components: the placement of each row among the other side's rows."""
    inside = [auc([score], scores[~member]) for score in scores[member]]
    return inside, [auc(scores[member], [score]) for score in scores[~member]]


def test_weight_is_covariance_over_variance_of_delongs_components(models):
    trained, base, member = models
    (inside, outside), (base_inside, base_outside) = (
        placements(s, member) for s in (trained, base)
    )
    both = [np.cov(inside, base_inside) / 25, np.cov(outside, base_outside) / 35]
    expected = sum(matrix[0, 1] for matrix in both) / sum(matrix[1, 1] for matrix in both)
    assert control_weights(aucs(trained, member), aucs(base, member)) == pytest.approx(expected)


def test_adjustment_removes_sampling_variation(models):
    trained, base, member = models
    raw, control = aucs(trained, member), aucs(base, member)
    weights = control_weights(raw, control)
    adjusted = cluster(adjust(raw, control, weights, centre=0.5))
    expected = auc(trained[member], trained[~member])
    expected -= float(weights[0]) * (auc(base[member], base[~member]) - 0.5)
    assert adjusted.value[0] == pytest.approx(expected)
    assert adjusted.variance[0] < 0.5 * cluster(raw).variance[0]
    # Known mistake: the plain difference has a weight of one, which is always worse.
    plain = cluster(adjust(raw, control, np.ones(1), centre=0.5))
    assert adjusted.variance[0] < plain.variance[0]


def test_a_base_model_with_equal_scores_has_no_weight(models):
    trained, _, member = models
    assert np.isnan(control_weights(aucs(trained, member), aucs(np.zeros(60), member))).all()


@pytest.mark.parametrize(
    "pair", [Pair(40, 1, 0.65, 0.9), Pair(100, 4, 0.5, 0.9), Pair(100, 1, 0.8, 0.9, 3, 0.03)]
)
def test_adjusted_intervals_cover_the_truth_and_are_narrower(pair):
    studies = 300
    result = studies_of(pair, studies)
    error = 3 * np.sqrt(0.95 * 0.05 / studies)
    assert 0.92 - error <= coverage(result.adjusted, result.truth).share <= min(1.0, 0.975 + error)
    widths = [np.nanmedian(ends.high - ends.low) for ends in (result.adjusted, result.raw)]
    assert widths[0] < 0.85 * widths[1]
