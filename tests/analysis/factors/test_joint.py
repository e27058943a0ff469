"""Joint covariances: equal to the report's own variances of single numbers, and to brute force."""

import numpy as np
import pytest

from analysis.factors.joint import (
    Rows,
    combine,
    group_freedom,
    join_seeds,
    seed_aucs,
    stack_seeds,
)
from analysis.intervals.clustered import Part, cluster
from analysis.intervals.influence import Side, auc_sample
from inject.keyed import Stream, generator, item_key


@pytest.fixture
def random():
    return generator(0, Stream.BOOTSTRAP, item_key("test joint"))


def _rows(random, n=60, group=3, datasets=2):
    member = np.arange(n) % 2 == 0
    number = np.arange(n) // group
    scores = random.normal(size=n) + member + random.normal(size=n)[number]
    return Rows(scores, member, number % datasets, number)


def test_aucs_are_shares_of_pairs_within_a_dataset(random):
    rows = _rows(random)
    half = np.arange(len(rows.scores)) < 30
    found = seed_aucs(rows, [rows.member, half], 20)
    for cell, value in zip([rows.member, half], found.value[0], strict=True):
        total, weight = 0.0, 0
        for dataset in (0, 1):
            here = rows.dataset == dataset
            inside = rows.scores[here & rows.member & cell]
            outside = rows.scores[here & ~rows.member]
            wins = sum((a > b) + 0.5 * (a == b) for a in inside for b in outside)
            total += wins / len(outside)
            weight += len(inside)
        assert value == pytest.approx(total / weight, abs=1e-12)


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_variance_of_one_auc_is_that_of_the_report(random, seeds):
    found, parts = [], []
    for _ in range(seeds):
        rows = _rows(random, datasets=1)
        found.append(seed_aucs(rows, [rows.member], 20))
        sample = auc_sample(
            Side(rows.scores[rows.member], rows.group[rows.member]),
            Side(rows.scores[~rows.member], rows.group[~rows.member]),
            np.ones((1, int(rows.member.sum())), dtype=bool),
            20,
        )
        parts.append({"": Part(sample, np.ones(1))})
    mine = combine(stack_seeds(found), np.ones((1, 1)))
    theirs = cluster(parts)
    assert mine.value[0] == pytest.approx(theirs.value[0], abs=1e-12)
    # Groups of three rows on both sides: nearly of one size, so the jackknife adds little.
    assert mine.covariance[0, 0] == pytest.approx(theirs.variance[0], rel=0.05)


def test_one_seeds_variance_is_the_jackknife_over_groups_of_members(random):
    """Groups of unequal sizes, members alone in doubt: leave one out, and see."""
    sizes = np.array([1, 2, 3, 9, 1, 4])
    number = np.concatenate([np.repeat(np.arange(6), sizes), np.full(400, 6) + np.arange(400)])
    member = number < 6
    scores = random.normal(size=len(number)) + random.normal(size=406)[number] * member
    # Non-members of one score move nothing.
    scores[~member] = 0.0
    rows = Rows(scores, member, np.zeros(len(number), dtype=np.int64), number)
    found = combine(seed_aucs(rows, [member], 406), np.ones((1, 1)))
    left = np.array([(scores[member & (number != g)] > 0).mean() for g in range(6)])
    whole = (scores[member] > 0).mean()
    assert found.covariance[0, 0] == pytest.approx(5 / 6 * np.square(left - whole).sum(), rel=1e-9)


def test_seeds_are_readers_and_share_what_their_rows_share(random):
    """Obuchowski and Rockette: the seeds' variance, and the covariance of two seeds' influence."""
    for _ in range(20):
        values, influence = random.normal(size=(4, 1)), random.normal(size=(4, 1, 10))
        influence += 2 * random.normal(size=(1, 1, 10))
        found = join_seeds(values, influence)
        pairs = [influence[a, 0] @ influence[b, 0] for a in range(4) for b in range(4) if a != b]
        expected = values.var(ddof=1) / 4 + max(np.mean(pairs), 0.0)
        assert found.covariance[0, 0] == pytest.approx(expected)
        hillis = 3 * (expected / (values.var(ddof=1) / 4)) ** 2
        assert 3 <= found.freedom[0] <= hillis + 1e-9


def test_a_joint_covariance_has_no_negative_direction(random):
    for _ in range(20):
        found = join_seeds(random.normal(size=(4, 3)), random.normal(size=(4, 3, 10)))
        assert np.linalg.eigvalsh(found.covariance).min() > -1e-9


def test_the_freedom_of_equal_groups_is_about_their_number(random):
    draws = [group_freedom(random.normal(size=(1, 30)))[0] for _ in range(300)]
    assert 20 < np.mean(draws) < 32
    # One group that carries nearly all of the variance leaves hardly any.
    heavy = np.concatenate([np.full((1, 1), 10.0), random.normal(size=(1, 29))], axis=1)
    assert group_freedom(heavy)[0] < 5
