"""Copies in a stretch counted in tokens from the end of training, against brute force."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inject import keyed
from inject.errors import InputError
from inject.plan import training_range
from inject.plan.settings import Copies, Placement
from tests.inject.streams import naive_find, naive_stream, plan_for, random_source, spiked_examples


def training_positions(seed: int, budget: int, context: int) -> np.ndarray:
    """Return the place in training of each token of the stream, by the definition of the order."""
    n_windows = budget // context
    hashes = keyed.words(seed, keyed.Stream.WINDOW_ORDER, np.arange(n_windows), 0)
    order = sorted(range(n_windows), key=lambda window: (int(hashes[window]), window))
    positions = np.full(budget, -1, dtype=np.int64)
    for rank, window in enumerate(order):
        begin = window * context
        positions[begin : begin + context] = np.arange(rank * context, (rank + 1) * context)
    return positions


@given(
    policy=st.sampled_from(["splice", "window", "document"]),
    budget=st.integers(1500, 4000),
    context=st.integers(32, 64),
    stretch=st.integers(200, 2000),
    tail=st.none() | st.integers(0, 1500),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_every_token_of_every_copy_is_in_the_stretch(policy, budget, context, stretch, tail, seed):
    source = random_source(budget, seed=seed, documents=600)
    examples, tokens = spiked_examples(4, 2, seed=seed)
    placement = Placement(policy=policy, stretch=stretch, tail=tail)
    try:
        plan = plan_for(
            examples, tokens, placement, source=source, context=context, seed=seed,
            copies=Copies(fixed=2),
        )  # fmt: skip
    except InputError:
        reject()
    window = context if policy == "window" else None
    stream = naive_stream(source, plan.insertions(), budget, window=window)
    positions = training_positions(seed, budget, context)
    end = budget // context * context - (tail or 0)
    for example in examples:
        places = naive_find(stream, tokens[example.example_id])
        assert len(places) == (2 if example.side == "member" else 0)
        for start in places:
            trained = positions[start : start + len(tokens[example.example_id])]
            assert trained.min() >= end - stretch
            assert trained.max() < end


@given(
    n_windows=st.integers(1, 300),
    context=st.integers(2, 64),
    stretch=st.integers(1, 5000),
    tail=st.integers(0, 5000),
)
def test_all_whole_windows_inside_the_stretch_are_allowed(n_windows, context, stretch, tail):
    end = n_windows * context - tail
    inside = [
        rank
        for rank in range(n_windows)
        if rank * context >= end - stretch and (rank + 1) * context <= end
    ]
    placement = Placement(stretch=stretch, tail=tail)
    if stretch + tail > n_windows * context or not inside:
        with pytest.raises(InputError) as caught:
            placement.shares(n_windows, context)
        assert f"{stretch:,} tokens" in str(caught.value)
        assert f"{n_windows * context:,}" in str(caught.value)
        return
    low, high = (int(share * n_windows) for share in placement.shares(n_windows, context))
    assert list(range(low, high)) == inside


def test_stretch_of_a_long_training_stays_inside_it(monkeypatch):
    monkeypatch.setattr(training_range, "EXACT", 1000)
    placement = Placement(stretch=2_000_000, tail=500_000)
    allowed = training_range.training_range(
        placement.shares(100_000, 64), seed=3, n_windows=100_000
    )
    hashes = keyed.words(3, keyed.Stream.WINDOW_ORDER, np.arange(100_000), 0)
    ranks = np.argsort(np.argsort(hashes, kind="stable"), kind="stable")
    inside = ranks[allowed.contains(np.arange(100_000))]
    assert len(inside) > 20_000
    assert inside.min() * 64 >= 6_400_000 - 2_500_000
    assert (inside.max() + 1) * 64 <= 6_400_000 - 500_000


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tail": 100}, "tail: 100 tokens after no stretch"),
        ({"stretch": 100, "between": (0, 0.5)}, "stretch: 100 tokens and between: .* both"),
        ({"stretch": 100, "straddle": "allow"}, "stretch restricts copies to some windows"),
        ({"stretch": 0}, "greater than 0"),
    ],
)
def test_contradictory_settings_are_rejected(values, message):
    with pytest.raises(ValidationError, match=message):
        Placement(**values)


def test_placement_label_and_identity_name_a_stretch_only_if_there_is_one():
    timed = Placement(policy="window", stretch=300_000, tail=40_000)
    assert timed.label() == "window stretch=300000 tail=40000"
    assert timed.contained
    assert timed.identity().items() >= {"stretch": 300_000, "tail": 40_000}.items()
    assert not {"stretch", "tail"} & Placement(between=(0, 0.5)).identity().keys()
