from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inject.plan.make_plan import draw_copy_counts
from inject.plan.settings import Copies
from tests.inject.streams import chisquare, spiked_examples


def realised(copies: Copies, count: int = 50, seed: int = 0, dataset: str = "toy"):
    examples, _ = spiked_examples(count, 0, dataset=dataset)
    return draw_copy_counts(copies, examples, seed=seed)[1].tolist()


def counts_by_id(copies: Copies, examples, seed: int):
    counts = draw_copy_counts(copies, examples, seed=seed)[1].tolist()
    return dict(zip([example.example_id for example in examples], counts, strict=True))


def test_poisson_counts_follow_the_distribution():
    from scipy.stats import poisson

    counts = np.array(realised(Copies(poisson=2.5), count=20_000))
    observed = np.bincount(np.minimum(counts, 9), minlength=10)
    expected = poisson.pmf(np.arange(9), 2.5)
    expected = np.append(expected, 1 - expected.sum()) * len(counts)
    assert chisquare(observed, expected).pvalue > 1e-4


def test_a_higher_rate_never_gives_fewer_copies():
    low, high = realised(Copies(poisson=0.5), 2000), realised(Copies(poisson=4), 2000)
    assert all(a <= b for a, b in zip(low, high, strict=True))


def test_poisson_dose_depends_only_on_the_example():
    examples, _ = spiked_examples(40, 0)
    others, _ = spiked_examples(17, 0, dataset="other")
    alone = counts_by_id(Copies(poisson=2), examples, 5)
    joined = counts_by_id(Copies(poisson=2), [*others, *examples[::-1]], 5)
    assert joined.items() >= alone.items()


@pytest.mark.parametrize("count", [11])
def test_levels_are_assigned_evenly_in_each_dataset(count):
    first, _ = spiked_examples(count, 0)
    second, _ = spiked_examples(count + 1, 0, dataset="other")
    levels = Copies(levels=(1, 2, 8))
    counts_of = counts_by_id(levels, first + second, 1)
    for examples in (first, second):
        counts = np.unique(
            [counts_of[example.example_id] for example in examples], return_counts=True
        )[1]
        assert counts.max() - counts.min() <= 1
    assert counts_of.items() >= counts_by_id(levels, first, 1).items()


def test_level_of_a_single_member_is_random():
    levels = (1, 2, 8)
    counts = [realised(Copies(levels=levels), 1, seed)[0] for seed in range(150)]
    assert chisquare([counts.count(level) for level in levels]).pvalue > 1e-3


@pytest.mark.parametrize("copies", [Copies(levels=(1, 16)), Copies(poisson=2.0)])
def test_rows_with_a_shared_passage_have_the_same_dose(copies):
    examples, _ = spiked_examples(90, 0)
    members = [replace(item, group=f"g{index // 3}") for index, item in enumerate(examples)]
    doses = defaultdict(set)
    for member, count in zip(members, draw_copy_counts(copies, members, seed=2)[1], strict=True):
        doses[member.group].add(int(count))
    assert all(len(counts) == 1 for counts in doses.values())
    assert len(set().union(*doses.values())) > 1
    if copies.levels:
        counts = np.unique([min(item) for item in doses.values()], return_counts=True)[1]
        assert counts.max() - counts.min() <= 1


LEVELS = st.lists(st.integers(0, 4), min_size=1, max_size=12).filter(any)


@given(levels=LEVELS, turns=st.integers(1, 4), seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_repeated_levels_are_weights(levels, turns, seed):
    counts = realised(Copies(levels=tuple(levels)), count=turns * len(levels), seed=seed)
    assert sorted(counts) == sorted(levels * turns)
    assert Copies(levels=tuple(levels)).mean == pytest.approx(np.mean(counts))


@given(levels=LEVELS, count=st.integers(1, 60), seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_weighted_levels_are_evenly_spread_over_any_run_of_groups(levels, count, seed):
    """So no stratum has only the small levels, nor only the large ones."""
    cycle = Copies(levels=tuple(levels)).level_cycle
    assert sorted(cycle) == sorted(levels)
    start = seed % len(cycle)
    run = [cycle[(start + turn) % len(cycle)] for turn in range(count)]
    for level in set(levels):
        assert abs(run.count(level) - count * levels.count(level) / len(levels)) < len(set(levels))


def test_distinct_levels_keep_their_order():
    assert Copies(levels=(8, 0, 2, 1)).level_cycle == (8, 0, 2, 1)
    assert Copies(levels=(0, 0, 1, 1, 1, 2)).level_cycle == (1, 0, 1, 2, 0, 1)


def test_level_label_compresses_repeats():
    assert Copies(levels=(0, 0, 1, 1, 1, 2)).label() == "levels=0x2-1x3-2"
    assert Copies(levels=(1, 4, 8)).label() == "levels=1-4-8"


def test_levels_without_any_copy_are_rejected():
    with pytest.raises(ValidationError, match="levels: all are 0, so no member has a copy"):
        Copies(levels=(0, 0))
