"""Random rounding, against its claims: bounds, margins, and the exact value as expectation."""

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.examples.random_rounding import draw_units, round_table


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    parts=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=100, deadline=None)
def test_rounded_table_keeps_its_margins_and_entries_round_up_or_down(sizes, parts, seed):
    total = sum(sizes)
    boundaries = [0, *(min(part, total) for part in parts)]
    columns = [later - sooner for sooner, later in pairwise([*sorted(boundaries), total])]
    table = [[column * size for column in columns] for size in sizes]
    rounded = round_table(table, total, np.random.default_rng(seed))
    assert [sum(row) for row in rounded] == sizes
    assert [sum(column) for column in zip(*rounded, strict=True)] == columns
    for row, exact in zip(rounded, table, strict=True):
        assert all(
            abs(value - Fraction(share, total)) < 1 for value, share in zip(row, exact, strict=True)
        )


@given(
    strata=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=6),
    share=st.integers(0, 10),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=80, deadline=None)
def test_drawn_units_are_within_one_unit_in_total_and_per_stratum(strata, share, seed):
    sizes = [size for stratum in strata for size in stratum]
    ends = list(accumulate(len(stratum) for stratum in strata))
    places = [range(start, end) for start, end in pairwise([0, *ends])]
    taken = draw_units(
        [share * size for size in sizes],
        [10 * size for size in sizes],
        places,
        np.random.default_rng(seed),
    )
    for some in (range(len(sizes)), *places):
        rows = sum(sizes[place] for place in some if taken[place])
        largest = max(sizes[place] for place in some)
        assert abs(rows - share / 10 * sum(sizes[place] for place in some)) < largest


def test_units_are_drawn_with_their_probability_whatever_their_size():
    masses, capacities = [1, 6, 3, 2, 9, 4, 5, 5], [10, 10, 12, 2, 10, 40, 7, 9]
    runs = 1_500
    counts = np.zeros(len(masses))
    for seed in range(runs):
        counts += draw_units(
            masses, capacities, [range(3), range(3, 8)], np.random.default_rng(seed)
        )
    exact = np.array(masses) / capacities
    assert np.all(np.abs(counts / runs - exact) <= 4.5 * np.sqrt(exact * (1 - exact) / runs))


def test_expected_entries_equal_their_shares():
    table = [[1, 2, 7], [8, 1, 1], [1, 7, 2]]
    random = np.random.default_rng(0)
    mean = np.mean([round_table(table, 10, random) for _ in range(2000)], axis=0)
    assert np.abs(mean - np.array(table) / 10).max() < 4.5 * 0.5 / 2000**0.5
