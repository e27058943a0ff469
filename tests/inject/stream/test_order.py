import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.stream.order import neighbours_hashes, window_hashes, window_order


@given(seed=st.integers(0, 2**63), short=st.integers(0, 300), more=st.integers(0, 300))
@settings(max_examples=50)
def test_a_longer_corpus_keeps_the_relative_order(seed, short, more):
    long = window_order(seed, 0, short + more)
    assert long[long < short].tolist() == window_order(seed, 0, short).tolist()


@given(
    seed=st.integers(0, 2**64 - 1), epoch=st.integers(0, 9), start=st.integers(0, 2**40),
    count=st.integers(0, 40),
)  # fmt: skip
@settings(max_examples=50)
def test_batched_window_hashes_match_single_ones(seed, epoch, start, count):
    alone = window_hashes(seed, epoch, np.arange(start, start + count, dtype=np.uint64))
    assert np.array_equal(neighbours_hashes(seed, epoch, start, start + count), alone)
