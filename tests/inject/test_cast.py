"""Who is spiked in a twin, against the same rules written out naively over numpy's own Philox."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inject.cast import Cast, Twins, spiked, with_cast
from inject.errors import InputError
from inject.example import Example
from inject.keyed import Stream, item_key


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
                    rows += [
                        Example(
                            example_id=f"{dataset}-{group}-{row}",
                            dataset=dataset,
                            source_id=f"{group}-{row}",
                            group=group,
                            stratum=stratum,
                            text=f"{dataset}-{group}-{row}",
                            side=side,
                            split=split,
                        )
                        for row in range(size)
                    ]
    return draw(st.permutations(rows))


def word(seed, stream, dataset, group, number):
    # numpy steps the counter before its first block.
    numpys = np.random.Philox(
        key=np.array([seed, int(stream)], dtype=np.uint64),
        counter=np.array([item_key(f"{dataset}\n{group}") - 1, number, 0, 0], dtype=np.uint64),
    )
    return int(numpys.random_raw())


def naive_cells(examples, stream, number, seed):
    """Each cell as a list of (stratum, random number, names of the rows)."""
    found = {}
    for one in examples:
        cell = found.setdefault((one.dataset, one.side, one.split), {})
        draw = word(seed, stream, one.dataset, one.group, number)
        cell.setdefault((one.stratum, draw), set()).add(one.example_id)
    return [
        [(stratum, draw, cell[stratum, draw]) for stratum, draw in sorted(cell)]
        for cell in found.values()
    ]


def naive_retrained(examples, share, seed):
    members = [one for one in examples if one.side == "member"]
    kept = {one.example_id for one in members}
    for cell in naive_cells(members, Stream.FORGET, 0, seed):
        gone, behind, stopped = [], 0, set()
        for stratum, draw, names in cell:
            behind = sum(len(ids) for of, _, ids in cell if of <= stratum)
            due = share * behind - sum(len(ids) for _, ids in gone)
            if stratum in stopped or due < Fraction(len(names), 2):
                stopped.add(stratum)
            else:
                gone.append((draw, names))
        if not gone:
            gone = [min((draw, names) for _, draw, names in cell)]
        if len(gone) == len(cell):
            gone.remove(max(gone, key=lambda group: group[0]))
        for _, names in gone:
            kept -= names
    return kept


def naive_shadow(examples, number, seed):
    inside = set()
    for cell in naive_cells(examples, Stream.SHADOW, number // 2, seed):
        sides = [[], []]
        for _, draw, names in cell:
            sizes = [len(side) for side in sides]
            place = draw % 2 if sizes[0] == sizes[1] else sizes.index(min(sizes))
            sides[place] += sorted(names)
        inside |= set(sides[number % 2])
    return inside


@given(pool=pools(), share=st.integers(1, 99), seed=st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_the_forget_set_is_the_naive_one(pool, share, seed):
    cast = Cast(kind="retrained", share=share / 100)
    found = spiked(pool, cast, seed=seed)
    assert found == naive_retrained(pool, Fraction(share, 100), seed)
    assert_groups_stay_whole(pool, found, "member")
    for cell in by_cell(pool, side="member"):
        groups = {one.group for one in cell}
        forgotten = {one.group for one in cell if one.example_id not in found}
        assert forgotten
        assert forgotten < groups
        wanted = share / 100 * len(cell)
        largest = max(Counter(one.group for one in cell).values())
        count = sum(one.example_id not in found for one in cell)
        # No further off than a group, where one can be taken and one left.
        assert abs(count - wanted) <= largest


@given(pool=pools(), number=st.integers(0, 9), seed=st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_shadows_are_the_naive_halves_and_complements(pool, number, seed):
    found = spiked(pool, Cast(kind="shadow", number=number), seed=seed)
    assert found == naive_shadow(pool, number, seed)
    other = spiked(pool, Cast(kind="shadow", number=number ^ 1), seed=seed)
    assert not found & other
    assert found | other == {one.example_id for one in pool}
    assert_groups_stay_whole(pool, found, "member", "nonmember")
    for cell in by_cell(pool):
        inside = sum(one.example_id in found for one in cell)
        largest = max(Counter(one.group for one in cell).values())
        assert abs(2 * inside - len(cell)) <= largest


@given(pool=pools(), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_another_dataset_and_another_order_change_nobodys_part(pool, seed):
    alone = [one for one in pool if one.dataset == "toy"]
    for cast in (
        Cast(kind="clean"),
        Cast(kind="retrained", share=0.3),
        Cast(kind="shadow", number=3),
    ):
        together = spiked(pool, cast, seed=seed)
        assert spiked(pool[::-1], cast, seed=seed) == together
        assert spiked(alone, cast, seed=seed) == {
            name for name in together if name.startswith("toy")
        }


def test_over_many_pairs_each_group_is_in_either_half_alike():
    pool = [
        Example(
            example_id=f"{number}",
            dataset="toy",
            source_id=f"{number}",
            group=f"g{number}",
            text=f"{number}",
            side="member",
            split="test",
        )
        for number in range(21)
    ]
    counts = Counter(
        name
        for number in range(0, 800, 2)
        for name in spiked(pool, Cast(kind="shadow", number=number), seed=5)
    )
    # 400 fair coins: 200 ± 10, so that 4.5 deviations are passed by chance once in 7,000 runs.
    assert all(abs(counts[one.example_id] - 200) < 45 for one in pool)


def test_sides_say_whom_the_model_sees_and_all_else_stays():
    pool = [
        Example(
            example_id=f"{side}-{number}",
            dataset="toy",
            source_id="",
            group=f"{side}-{number}",
            text="",
            side=side,
        )
        for side in ("member", "nonmember")
        for number in range(4)
    ]
    assert {one.side for one in with_cast(pool, Cast(kind="clean"), seed=0)} == {"nonmember"}
    half = with_cast(pool, Cast(kind="shadow", number=0), seed=0)
    assert Counter(one.side for one in half) == {"member": 4, "nonmember": 4}
    assert [one.example_id for one in half] == [one.example_id for one in pool]
    again = with_cast(pool, Cast(kind="retrained", share=0.5), seed=0)
    assert Counter(one.side for one in again) == {"member": 2, "nonmember": 6}


def test_a_single_group_cannot_be_divided():
    rows = [
        Example(
            example_id=f"{side}-{number}",
            dataset="lonely",
            source_id="",
            group=f"{side}" if side == "member" else f"{number}",
            text="",
            side=side,
        )
        for side in ("member", "nonmember")
        for number in range(3)
    ]
    with pytest.raises(InputError, match=r"twins\.retrained: lonely has a single group of members"):
        spiked(rows, Cast(kind="retrained", share=0.5), seed=0)
    with pytest.raises(InputError, match=r"contaminants\.lonely: twins\.shadows"):
        spiked(rows, Cast(kind="shadow", number=0), seed=0)
    assert spiked(rows, Cast(kind="clean"), seed=0) == frozenset()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"shadows": 3}, "3 is odd.*give 2 or 4"),
        ({"shadows": -2}, "greater than or equal to 0"),
        ({"retrained": 0}, "greater than 0"),
        ({"retrained": 1}, "less than 1"),
    ],
)
def test_what_cannot_be_is_refused(values, said):
    with pytest.raises(ValidationError, match=said):
        Twins(**values)


def by_cell(pool, side=None):
    found = {}
    for one in pool:
        if side in (None, one.side):
            found.setdefault((one.dataset, one.side, one.split), []).append(one)
    return found.values()


def assert_groups_stay_whole(pool, found, *sides):
    for side in sides:
        for cell in by_cell(pool, side):
            inside = {one.group for one in cell if one.example_id in found}
            outside = {one.group for one in cell if one.example_id not in found}
            assert not inside & outside
