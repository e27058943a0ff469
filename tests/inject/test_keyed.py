import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from inject import keyed
from inject.keyed import Stream

WORD = st.integers(0, 2**64 - 1)


@given(seed=WORD, item=st.integers(1, 2**64 - 1), number=WORD, draw=WORD)
def test_words_match_numpys_philox(seed, item, number, draw):
    word = keyed.words(seed, Stream.ANCHOR, item, number, draw)
    # numpy steps the counter before its first block.
    numpys = np.random.Philox(
        key=np.array([seed, int(Stream.ANCHOR)], dtype=np.uint64),
        counter=np.array([item - 1, number, draw, 0], dtype=np.uint64),
    )
    assert int(word) == int(numpys.random_raw())


@given(bound=st.integers(1, 2**63), word=WORD)
def test_below_is_the_high_half_of_the_exact_product(bound, word):
    assert int(keyed.below(bound, np.array(word, dtype=np.uint64))) == (bound * word) >> 64


def test_a_draw_does_not_depend_on_its_neighbours():
    items = np.arange(1, 1001, dtype=np.uint64)
    together = keyed.words(7, Stream.COPY_COUNT, items)
    alone = [int(keyed.words(7, Stream.COPY_COUNT, item)) for item in items[::97]]
    assert together[::97].tolist() == alone


def test_streams_and_seeds_differ():
    items = np.arange(1000)
    draws = {keyed.words(seed, stream, items).tobytes() for seed in range(3) for stream in Stream}
    assert len(draws) == 3 * len(Stream)


def test_unit_is_uniform_and_inside_the_open_interval():
    values = keyed.unit(keyed.words(1, Stream.COPY_COUNT, np.arange(100_000)))
    assert values.min() > 0
    assert values.max() < 1
    counts, _ = np.histogram(values, bins=100, range=(0, 1))
    assert chisquare(counts).pvalue > 1e-4
