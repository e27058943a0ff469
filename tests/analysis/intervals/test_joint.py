"""Joint covariances against the report's variances of single numbers and brute force."""

import numpy as np
import pytest

from analysis.intervals.joint import group_freedom, join_seeds
from analysis.intervals.numbers import join_numbers
from analysis.intervals.rows import Rows, auc_numbers
from inject.keyed import Stream, generator, item_key
from tests.analysis.oracles import auc


@pytest.fixture
def random():
    return generator(0, Stream.BOOTSTRAP, item_key("test joint"))


def _rows(random, n=60, group=3, datasets=2, seeds=1):
    member = np.arange(n) % 2 == 0
    number = np.arange(n) // group
    scores = [random.normal(size=n) + member + random.normal(size=n)[number] for _ in range(seeds)]
    rows = Rows(
        seed=np.repeat(np.arange(seeds), n),
        dataset=np.tile((number % datasets).astype(str).astype(object), seeds),
        group=np.tile(number, seeds),
        member=np.tile(member, seeds),
        nonmember=np.tile(~member, seeds),
    )
    return rows, np.concatenate(scores)


def _weighted(values, sizes):
    return sum(v * s for v, s in zip(values, sizes, strict=True)) / sum(sizes)


def test_pooled_number_and_influence_match_loops_over_groups(random):
    """Omitting one group of a dataset's members changes the number by its influence."""
    rows, scores = _rows(random)
    half = np.arange(len(scores)) < 30
    numbers = auc_numbers(rows, scores, np.stack([rows.member, half]), jackknife=True)
    by_seed = numbers.by_seed()

    def pooled(cell, without=None):
        aucs, sizes = [], []
        for dataset in ("0", "1"):
            in_dataset = rows.dataset == dataset
            inside = in_dataset & rows.member & cell
            used = inside & ((rows.group != without) if dataset == "0" else True)
            aucs.append(auc(scores[used], scores[in_dataset & rows.nonmember]))
            sizes.append(inside.sum())
        return _weighted(aucs, sizes)

    for k, cell in enumerate((rows.member, half)):
        assert by_seed.value[0, k] == pytest.approx(pooled(cell), abs=1e-12)
    # Equal non-members have no influence, so only the members' part remains.
    flat = np.where(rows.nonmember, 0.0, scores)
    moved = auc_numbers(rows, flat, rows.member[None], jackknife=True).by_seed().influence[0, 0]
    scores = flat
    groups = np.unique(rows.group[(rows.dataset == "0") & rows.member])
    factor = np.sqrt((len(groups) - 1) / len(groups))
    for group in groups:
        off = pooled(rows.member) - pooled(rows.member, without=group)
        assert moved[group] == pytest.approx(factor * off, abs=1e-12)


@pytest.mark.parametrize("seeds", [1, 2])
def test_variance_of_one_auc_matches_the_report(random, seeds):
    rows, scores = _rows(random, datasets=1, seeds=seeds)
    joint = auc_numbers(rows, scores, jackknife=True).by_seed().covariance(np.ones((1, 1)))
    reported = auc_numbers(rows, scores).clustered()
    assert joint.value[0] == pytest.approx(reported.value[0], abs=1e-12)
    # Groups have three rows on both sides, nearly one size, so the jackknife adds little.
    assert joint.covariance[0, 0] == pytest.approx(reported.variance[0], rel=0.05)


def test_variance_of_one_seed_is_the_jackknife_over_member_groups(random):
    """Groups have unequal sizes and only members vary: compare with leaving one group out."""
    sizes = np.array([1, 2, 3, 9, 1, 4])
    number = np.concatenate([np.repeat(np.arange(6), sizes), np.full(400, 6) + np.arange(400)])
    member = number < 6
    scores = random.normal(size=len(number)) + random.normal(size=406)[number] * member
    # Non-members with equal scores have no influence.
    scores[~member] = 0.0
    numbers = auc_numbers(Rows.of(number, member=member), scores, jackknife=True)
    joint = numbers.by_seed().covariance(np.ones((1, 1)))
    without = np.array([(scores[member & (number != g)] > 0).mean() for g in range(6)])
    whole = (scores[member] > 0).mean()
    assert joint.covariance[0, 0] == pytest.approx(
        5 / 6 * np.square(without - whole).sum(), rel=1e-9
    )


def test_joined_numbers_keep_their_values_and_gaps(random):
    rows, scores = _rows(random, seeds=2)
    first = auc_numbers(rows, scores, jackknife=True)
    lacking = auc_numbers(rows, np.where(rows.seed == 1, np.nan, scores), jackknife=True)
    both, single = join_numbers([first, lacking]).by_seed(), first.by_seed()
    assert both.value[:, 0] == pytest.approx(single.value[:, 0])
    assert both.influence[:, 0] == pytest.approx(single.influence[:, 0])
    assert both.value[0, 1] == both.value[0, 0]
    assert np.isnan(both.value[1, 1])
    assert both.members.tolist() == [[30, 30], [30, 0]]
    difference = both.covariance(np.array([[1.0, -1.0]]))
    assert (difference.value[0], difference.error[0], difference.seeds) == (0.0, 0.0, 1)


def test_joined_seeds_match_obuchowski_and_rockette(random):
    """Obuchowski and Rockette: the variance of seeds and the covariance of their influence."""
    for _ in range(20):
        values, influence = random.normal(size=(4, 1)), random.normal(size=(4, 1, 10))
        influence += 2 * random.normal(size=(1, 1, 10))
        joint = join_seeds(values, influence)
        pairs = [influence[a, 0] @ influence[b, 0] for a in range(4) for b in range(4) if a != b]
        expected = values.var(ddof=1) / 4 + max(np.mean(pairs), 0.0)
        assert joint.covariance[0, 0] == pytest.approx(expected)
        hillis = 3 * (expected / (values.var(ddof=1) / 4)) ** 2
        assert 3 <= joint.freedom[0] <= hillis + 1e-9


def test_a_joint_covariance_has_no_negative_direction(random):
    for _ in range(20):
        joint = join_seeds(random.normal(size=(4, 3)), random.normal(size=(4, 3, 10)))
        assert np.linalg.eigvalsh(joint.covariance).min() > -1e-9


def test_degrees_of_freedom_of_equal_groups_are_about_their_number(random):
    draws = [group_freedom(random.normal(size=(1, 30)))[0] for _ in range(300)]
    assert 20 < np.mean(draws) < 32
    # One group with nearly all of the variance leaves few degrees of freedom.
    heavy = np.concatenate([np.full((1, 1), 10.0), random.normal(size=(1, 29))], axis=1)
    assert group_freedom(heavy)[0] < 5


def test_a_constant_number_has_the_degrees_of_freedom_of_its_seeds(random):
    """Regression: rounding gave it infinite degrees of freedom and too narrow an interval."""
    values, influence = random.normal(size=(3, 11)), random.normal(size=(3, 11, 40))
    values[:, 4], influence[:, 4] = 1.0, 0.0
    joint = join_seeds(values, influence)
    assert (joint.covariance[4], joint.freedom[4]) == (pytest.approx(0.0, abs=0.0), 2.0)
