"""Influence values against the variance of an AUC, written out from the papers."""

import itertools

import numpy as np
import pytest

from analysis.intervals.clustered import Part, cluster
from analysis.intervals.ends import IntervalMethod, find_interval
from analysis.intervals.influence import (
    Side,
    allowed_false_positives,
    auc_sample,
    difference,
    tpr_sample,
    trend_sample,
)
from tests.analysis.oracles import auc


def rows(n: int, first: int, size: int = 1, seed: int = 0, shift: float = 0.0, ties: bool = False):
    random = np.random.default_rng(seed)
    scores = random.normal(shift, 1, n)
    return Side(np.round(scores) if ties else scores, np.arange(n) // size + first)


def kernel(first: float, second: float) -> float:
    return 1.0 if first > second else 0.5 if first == second else 0.0


def all_rows(side: Side) -> np.ndarray:
    return np.ones((1, len(side.scores)), dtype=bool)


@pytest.mark.parametrize("ties", [False, True])
def test_variance_matches_delong(ties):
    """DeLong et al. 1988: S10 / m + S01 / n, from the placements of both sides."""
    members, others = rows(17, 0, shift=0.7, ties=ties), rows(23, 17, seed=1, ties=ties)
    sample = auc_sample(members, others, all_rows(members), 40)
    inside = [np.mean([kernel(x, y) for y in others.scores]) for x in members.scores]
    outside = [np.mean([kernel(x, y) for x in members.scores]) for y in others.scores]
    expected = np.var(inside, ddof=1) / 17 + np.var(outside, ddof=1) / 23
    assert sample.value[0] == pytest.approx(auc(members.scores, others.scores), abs=1e-12)
    assert np.square(sample.influence.sum(axis=0)).sum() == pytest.approx(expected, rel=1e-12)
    # Groups leave the row-level variance unchanged; Hanley and McNeil 1982: mean of Q1 and Q2.
    together = auc_sample(
        members._replace(groups=members.groups // 3), others, all_rows(members), 40
    )
    theta = sample.value[0]
    first, second = theta / (2 - theta) - theta**2, 2 * theta**2 / (1 + theta) - theta**2
    for result in (sample, together):
        observed, of_many = result.of_rows[:, 0]
        assert observed == pytest.approx(expected, rel=1e-12)
        assert of_many == pytest.approx((first + second) / 2 * (1 / 17 + 1 / 23), rel=1e-12)


def test_groups_are_summed_as_in_obuchowski():
    """Obuchowski 1997, equation 3: group sums of (placement - AUC), times I / (I - 1) / m²."""
    members, others = rows(20, 0, size=4, shift=0.5), rows(30, 5, size=5, seed=1)
    sample = auc_sample(members, others, all_rows(members), 11)
    theta = auc(members.scores, others.scores)
    inside = [np.mean([kernel(x, y) for y in others.scores]) - theta for x in members.scores]
    outside = [np.mean([kernel(x, y) for x in members.scores]) - theta for y in others.scores]
    first = np.add.reduceat(inside, range(0, 20, 4))
    second = np.add.reduceat(outside, range(0, 30, 5))
    expected = 5 / 4 * (first**2).sum() / 20**2 + 6 / 5 * (second**2).sum() / 30**2
    assert np.square(sample.influence.sum(axis=0)).sum() == pytest.approx(expected, rel=1e-12)
    assert sample.groups[:, 0].tolist() == [5, 6]


def test_a_cell_is_the_auc_of_only_its_members():
    members, others = rows(12, 0, shift=0.5), rows(15, 12, seed=1)
    within = np.zeros((2, 12), dtype=bool)
    within[0, :5] = within[1, 5:] = True
    both = auc_sample(members, others, within, 27)
    single = auc_sample(
        Side(members.scores[:5], members.groups[:5]), others, np.ones((1, 5), dtype=bool), 27
    )
    assert both.value[0] == pytest.approx(single.value[0])
    assert both.influence[:, 0] == pytest.approx(single.influence[:, 0])
    assert both.groups[0].tolist() == [5, 7]


def test_shared_influence_cancels_in_a_difference():
    members, others = rows(30, 0, shift=0.5), rows(40, 30, seed=1)
    first = auc_sample(members, others, all_rows(members), 70)
    moved = Side(members.scores + 1e-9, members.groups)
    second = auc_sample(moved, others, all_rows(members), 70)
    gap = difference(first, second)
    assert np.square(gap.influence).sum() < 1e-9 * np.square(first.influence).sum()


def test_trend_and_variance_match_all_pairs():
    side = rows(14, 0, ties=True)
    copies = np.random.default_rng(2).integers(0, 4, 14)
    trend, pairs = trend_sample(side, copies, 14)
    signs, counted = np.zeros(14), np.zeros(14)
    for i, j in itertools.permutations(range(14), 2):
        if copies[i] != copies[j]:
            up = 1 if copies[i] > copies[j] else -1
            signs[i] += up * np.sign(side.scores[i] - side.scores[j])
            counted[i] += 1
    value = signs.sum() / counted.sum()
    influence = 2 * (signs - value * counted) / counted.sum()
    assert (trend.value[0], pairs) == pytest.approx((value, counted.sum() / 2))
    assert trend.influence[0, 0] == pytest.approx(influence * np.sqrt(14 / 13))


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("few", [1, 2, 3, 40])
def test_trend_depends_on_members_with_uncommon_copy_counts(few, strata):
    """With one of ninety members never read, its rank carries no information on doses."""
    side = rows(90, 0)
    copies = (np.arange(90) >= few).astype(np.int64)
    trend, _ = trend_sample(side, copies, 90, copies if strata else None)
    assert trend.groups.tolist() == [[few], [few]]
    assert trend.freedom[0, 0] == max(few - 1, 1)
    interval = find_interval(
        cluster([{"": Part(trend, np.ones(1))}]), IntervalMethod.TREND, confidence=0.95
    )
    assert np.isfinite(interval.low[0]) == (few >= 3)
    assert interval.about[0].startswith("none") == (few < 3)


@pytest.mark.parametrize(
    ("rate", "nonmembers", "allowed"), [(0.1, 100, 9), (0.1, 99, 9), (0.1, 9, 0), (0.1, 8, -1)]
)
def test_allowed_false_positives_keep_the_expected_rate(rate, nonmembers, allowed):
    assert allowed_false_positives(rate, nonmembers) == allowed
    assert (allowed + 1) / (nonmembers + 1) <= rate < (allowed + 2) / (nonmembers + 1) or (
        allowed == -1
    )


def test_threshold_uncertainty_enters_the_variance_through_the_roc_slope():
    """With members on a steep curve their share is certain but the threshold is not."""
    members = rows(2000, 0, shift=1.0)
    samples = [
        tpr_sample(members, rows(100, 2000, seed=seed), all_rows(members), 2100, 0.1)
        for seed in range(60)
    ]
    inside, outside = np.mean(
        [np.square(sample.influence[:, 0]).sum(axis=1) for sample in samples], axis=0
    )
    assert outside == pytest.approx(np.var([sample.value[0] for sample in samples]), rel=0.5)
    assert outside > 5 * inside


def test_planned_levels_are_strata():
    """Cochran 1977, 5A.3: squared shares of the strata times the variances of their means."""
    members, others = rows(30, 0, size=2), rows(40, 15, seed=1)
    copies = np.array([1, 4, 16])[members.groups % 3]
    moved = Side(members.scores + np.log2(copies), members.groups)
    sample = auc_sample(moved, others, all_rows(moved), 55, copies)
    inside = np.array([auc([score], others.scores) for score in moved.scores])
    expected = 0.0
    for level in (1, 4, 16):
        means = [inside[members.groups == group].mean() for group in set(
            members.groups[copies == level].tolist()
        )]  # fmt: skip
        expected += (1 / 3) ** 2 * np.var(means, ddof=1) / 5
    assert np.square(sample.influence[0, 0]).sum() == pytest.approx(expected, rel=1e-12)
    assert sample.freedom[0, 0] == 12
    plain = auc_sample(moved, others, all_rows(moved), 55)
    assert expected < 0.7 * np.square(plain.influence[0, 0]).sum()
    assert sample.value == plain.value
    assert sample.influence[1] == pytest.approx(plain.influence[1])


def test_trend_variance_over_levels_matches_simulated_studies():
    random = np.random.default_rng(0)
    copies = np.repeat([1, 2, 4, 8], 12)
    values, plain, stratified = [], [], []
    for _ in range(400):
        side = Side(random.normal(size=48) + 0.7 * np.log2(1 + copies), np.arange(48))
        for strata, variances in ((None, plain), (copies, stratified)):
            sample, _ = trend_sample(side, copies, 48, strata)
            variances.append(np.square(sample.influence).sum())
        values.append(sample.value[0])
    assert np.mean(stratified) == pytest.approx(np.var(values), rel=0.2)
    assert np.mean(plain) > np.mean(stratified)
