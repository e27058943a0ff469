"""Copies stay in the requested range of training, however many windows there are."""

import sys

import numpy as np
import pytest

from inject import keyed
from inject.errors import InputError
from inject.plan import training_range
from inject.plan.training_range import HashedRange, RankedRange, rank_margin
from inject.stream.order import window_order
from tests.inject.streams import chisquare
from tests.processes import printed

N = 100_000


def ranks(seed: int) -> np.ndarray:
    """Return the place of each window in the first epoch, by the definition of the order."""
    hashes = keyed.words(seed, keyed.Stream.WINDOW_ORDER, np.arange(N, dtype=np.uint64), 0)
    rank_of = np.empty(N, dtype=np.int64)
    rank_of[sorted(range(N), key=lambda window: (int(hashes[window]), window))] = np.arange(N)
    return rank_of


def stretch(monkeypatch, between, seed):
    monkeypatch.setattr(training_range, "EXACT", 1000)
    return training_range.training_range(between, seed=seed, n_windows=N)


def draw(allowed, seed, count=40_000):
    keys = keyed.item_keys([f"example {index}" for index in range(count)])
    zero = np.zeros(count, dtype=np.int64)
    return allowed.draw(seed, keys, zero, zero)


@pytest.mark.parametrize(("seed", "between"), [(0, (0.0, 0.2)), (1, (0.4, 0.7)), (2, (0.8, 1.0))])
def test_unlisted_windows_are_inside_the_range_and_drawn_evenly(monkeypatch, between, seed):
    allowed = stretch(monkeypatch, between, seed)
    assert isinstance(allowed, HashedRange)
    low, high = (int(share * N) for share in between)
    place = ranks(seed)
    windows = draw(allowed, seed)
    assert (place[windows] >= low).all()
    assert (place[windows] < high).all()
    # All windows are inside the range, and only the margin at inner ends is lost.
    inside = np.flatnonzero(allowed.contains(np.arange(N)))
    assert (place[inside] >= low).all()
    assert (place[inside] < high).all()
    assert allowed.count <= len(inside) <= high - low
    assert high - low - len(inside) <= 4 * rank_margin(N) * N + 1
    counts, _ = np.histogram(
        place[windows], bins=40, range=(place[inside].min(), place[inside].max() + 1)
    )
    assert chisquare(counts).pvalue > 1e-4


def test_margin_covers_all_ranks():
    """The inequality that `HashedRange` relies on, for orders that can be computed."""
    for seed in range(8):
        order = window_order(seed, 0, 20_000)
        hashes = keyed.words(seed, keyed.Stream.WINDOW_ORDER, order.astype(np.uint64), 0)
        apart = np.abs(np.arange(20_000) / 20_000 - hashes / 2.0**64)
        assert apart.max() < rank_margin(20_000)


def test_draw_depends_only_on_its_copy_and_draws_differ(monkeypatch):
    allowed = stretch(monkeypatch, (0.2, 0.4), 0)
    keys = keyed.item_keys([f"example {index}" for index in range(500)])
    copies = np.arange(500, dtype=np.int64) % 3
    zero = np.zeros(500, dtype=np.int64)
    first = allowed.draw(0, keys, copies, zero)
    some = np.arange(0, 500, 7)
    assert np.array_equal(allowed.draw(0, keys[some], copies[some], zero[some]), first[some])
    assert (allowed.draw(0, keys, copies, zero + 1) != first).mean() > 0.99


def test_narrow_range_costs_no_more_than_a_wide_one(monkeypatch):
    """Counts hashed windows: each is hashed at most twice, for counting and drawing."""
    hashed = []

    def counting(name):
        made = getattr(training_range, name)

        def count_hashes(*arguments):
            hashes = made(*arguments)
            hashed.append(len(hashes))
            return hashes

        return count_hashes

    for name in ("window_hashes", "neighbours_hashes"):
        monkeypatch.setattr(training_range, name, counting(name))
    monkeypatch.setattr(training_range, "EXACT", 1000)
    windows = 1 << 20
    work = {}
    for share in (0.5, 0.05, 0.02):
        allowed = training_range.training_range((0.25, 0.25 + share), seed=0, n_windows=windows)
        hashed.clear()
        assert allowed.contains(draw(allowed, 0, count=20_000)).all()
        work[share] = sum(hashed)
    assert max(work.values()) <= 2 * windows + 20_000
    assert max(work.values()) < 1.1 * min(work.values())


def test_few_windows_are_listed_by_their_ranks():
    allowed = training_range.training_range((0.25, 0.5), seed=3, n_windows=64)
    assert isinstance(allowed, RankedRange)
    assert set(allowed.allowed.tolist()) == set(window_order(3, 0, 64)[16:32].tolist())
    assert allowed.contains(np.arange(64)).sum() == 16


def test_range_narrower_than_the_rank_margin_is_rejected(monkeypatch):
    with pytest.raises(InputError, match=r"too short a range .* Widen it to"):
        stretch(monkeypatch, (0.5, 0.501), 0)


CHILD = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from inject.plan.make_plan import PlanSettings, make_plan
from inject.corpus.separators import NO_SEPARATORS
from inject.plan.settings import Copies, Placement
from scripts.bench.injection.planning import CONTEXT, TOKENS, VOCABULARY, Described, spiked
examples, texts = spiked(100, 50, vocabulary=VOCABULARY)
plan = make_plan(
    examples, texts,
    PlanSettings(
        copies=Copies(fixed=3), placement=Placement(policy="window", between=(0.9, 1)),
        budget=TOKENS // 10, context=CONTEXT, seed=0,
    ),
    source=Described(), separators=NO_SEPARATORS, vocabulary=VOCABULARY,
)
print(len(plan.copies))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_late_range_of_fifty_million_windows_is_planned_in_bounded_memory():
    assert printed(CHILD) == "300"
