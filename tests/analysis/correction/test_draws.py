"""Calibration and test sets have no item and no group in common, as an oracle counts them."""

import numpy as np
import pytest

from analysis.correction.draws import draw_sets, group_orders


def pool(seed: int, groups: int = 90, largest: int = 4):
    """Groups of one to four rows, each on one side."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, largest + 1, groups)
    group = np.repeat(np.arange(groups), sizes)
    side = draw.random(groups) < 0.5
    order = draw.permutation(len(group))
    return side[group][order], group[order]


@pytest.mark.parametrize("size", [10, 20, 50])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_no_group_calibrates_and_is_corrected(size: int, share: float):
    member, group = pool(seed=size)
    orders = group_orders(group, 30, np.random.default_rng(1))
    sets = draw_sets(member, group, orders, size=size, share=share)
    assert sets is not None
    for calibration, corrected in zip(sets.calibration, sets.corrected, strict=True):
        first, second = calibration.tolist(), corrected.tolist()
        assert len(first) == len(set(first)) == size
        assert len(second) == len(set(second))
        assert not set(first) & set(second)
        assert not {group[at] for at in first} & {group[at] for at in second}
        assert sum(bool(member[at]) for at in first) == size // 2
        assert [bool(member[at]) for at in second] == sorted(member[second].tolist(), reverse=True)
        inside = sum(bool(member[at]) for at in second)
        assert inside == sets.members
        assert abs(inside - share * len(second)) <= 1


def test_groups_calibrate_whole_and_in_random_order():
    member, group = pool(seed=5)
    orders = group_orders(group, 200, np.random.default_rng(2))
    sets = draw_sets(member, group, orders, size=10, share=0.5)
    assert sets is not None
    for calibration in sets.calibration:
        cut = [at for at in set(group[calibration].tolist())
               if (group == at).sum() > (group[calibration] == at).sum()]  # fmt: skip
        # Only the last group of each side can be larger than its part.
        assert len(cut) <= 2
    assert len(np.unique(sets.calibration)) == len(member)


def test_sizes_share_their_orders():
    member, group = np.arange(200) < 100, np.arange(200)
    orders = group_orders(group, 4, np.random.default_rng(3))
    small, large = (draw_sets(member, group, orders, size=n, share=0.3) for n in (10, 20))
    assert small is not None
    assert large is not None
    for own, other in zip(small.calibration, large.calibration, strict=True):
        assert set(own.tolist()) < set(other.tolist())


def test_too_few_items_make_no_draw():
    orders = group_orders(np.arange(40), 3, np.random.default_rng(4))
    member = np.arange(40) < 20
    assert draw_sets(member, np.arange(40), orders, size=50, share=0.3) is None
    assert draw_sets(member, np.arange(40), orders, size=20, share=0.5) is not None
    assert draw_sets(np.ones(40, bool), np.arange(40), orders, size=10, share=0.3) is None
