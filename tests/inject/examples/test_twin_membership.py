"""Members of a twin: whole groups, the requested shares, and equal chances for all rows."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.examples.twin_membership import (
    TwinMembership,
    twin_members,
)
from tests.inject.examples.drawing import plain_row


def cells():
    """Groups of one dataset, side and split: a stratum and a number of rows each."""
    return st.lists(
        st.tuples(st.sampled_from(["", "law", "science"]), st.integers(1, 4)),
        min_size=2,
        max_size=9,
    )


@st.composite
def pools(draw, datasets=("toy", "news")):
    rows = []
    for dataset in datasets:
        for side in ("member", "nonmember"):
            for split in ("tune", "test"):
                for number, (stratum, size) in enumerate(draw(cells())):
                    group = f"{side}-{split}-{number}"
                    place = {"dataset": dataset, "side": side, "split": split, "stratum": stratum}
                    rows += [
                        plain_row(f"{dataset}-{group}-{n}", group, **place) for n in range(size)
                    ]
    return draw(st.permutations(rows))


@given(pool=pools(), number=st.integers(0, 9), seed=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_shadow_memberships_are_complementary_halves(pool, number, seed):
    members = twin_members(pool, TwinMembership(kind="shadow", number=number), seed=seed)
    other = twin_members(pool, TwinMembership(kind="shadow", number=number ^ 1), seed=seed)
    assert not members & other
    assert members | other == {item.example_id for item in pool}
    for cell in by_cell(pool):
        assert not {row.group for row in cell if row.example_id in members} & {
            row.group for row in cell if row.example_id in other
        }
        inside = sum(item.example_id in members for item in cell)
        largest = max(Counter(item.group for item in cell).values())
        assert abs(2 * inside - len(cell)) <= largest


@given(pool=pools(), seed=st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_other_datasets_and_row_order_do_not_change_twin_members(pool, seed):
    alone = [row for row in pool if row.dataset == "toy"]
    for membership in (
        TwinMembership(kind="clean"),
        TwinMembership(kind="retrained", share=0.3),
        TwinMembership(kind="shadow", number=3),
    ):
        together = twin_members(pool, membership, seed=seed)
        assert twin_members(pool[::-1], membership, seed=seed) == together
        assert twin_members(alone, membership, seed=seed) == {
            name for name in together if name.startswith("toy")
        }


def test_rows_of_two_small_strata_are_not_always_in_different_halves():
    pool = [plain_row(f"{number}", stratum=f"{number:02d}") for number in range(20)]
    apart = Counter()
    for number in range(0, 400, 2):
        inside = twin_members(pool, TwinMembership(kind="shadow", number=number), seed=3)
        for place in range(0, 20, 2):
            apart[place] += (f"{place}" in inside) != (f"{place + 1}" in inside)
    # Of 20 rows, two are in different halves with probability 10 / 19: 105 ± 7 of 200.
    assert all(70 < count < 140 for count in apart.values())


def test_a_single_group_cannot_be_divided():
    rows = [plain_row(f"m{number}", "one", dataset="lonely") for number in range(3)]
    rows += [plain_row(f"n{number}", dataset="lonely", side="nonmember") for number in range(3)]
    with pytest.raises(InputError, match=r"twins\.retrained: lonely has a single group of members"):
        twin_members(rows, TwinMembership(kind="retrained", share=0.5), seed=0)
    with pytest.raises(InputError, match=r"contaminants\.lonely: twins\.shadows"):
        twin_members(rows, TwinMembership(kind="shadow", number=0), seed=0)
    assert twin_members(rows, TwinMembership(kind="clean"), seed=0) == frozenset()


def by_cell(pool):
    cells = {}
    for row in pool:
        cells.setdefault((row.dataset, row.side, row.split), []).append(row)
    return cells.values()
