"""Copies kept inside windows, and all policies' guarantees, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inject.errors import InputError
from inject.plan.settings import Copies, Placement
from inject.stream.order import window_order
from inject.stream.view import clean_view
from tests.inject.stream.test_view import composed, placements, plans
from tests.inject.streams import (
    END,
    ArraySource,
    chisquare,
    naive_find,
    plan_for,
    random_source,
    spiked_examples,
)


@given(plans())
@settings(max_examples=60, deadline=None)
def test_plan_keeps_its_invariants(made):
    every_planned_copy_is_intact_and_nothing_else_is_there(made)
    separators_stand_around_each_copy(made)
    documents_start_where_brute_force_says(made)
    if made[-1].facts.policy == "window":
        assert_other_windows_are_unchanged(made)


def every_planned_copy_is_intact_and_nothing_else_is_there(made):
    source, examples, tokens, plan = made
    stream = composed(source, plan)
    starts = plan.view(source).text_starts().tolist()
    payload = plan.copies["payload_length"].to_pylist()
    by_example = {example.example_id: [] for example in examples}
    for name, start in zip(plan.names(), starts, strict=True):
        by_example[name.example_id].append(start)
    for name, ids in tokens.items():
        assert naive_find(stream, ids) == sorted(by_example[name])
        assert len(by_example[name]) == plan.realised()[name]
    assert len(stream) == plan.facts.budget == plan.facts.background + sum(payload)


def separators_stand_around_each_copy(made):
    source, _, tokens, plan = made
    stream = composed(source, plan).tolist()
    lead, trail = {
        "none": ([], []),
        "blank_line": ([97, 98], [97, 98]),
        "end": ([] if plan.facts.policy == "document" else [END], [END]),
        "start_end": ([99], [END]),
    }[plan.facts.separator]
    starts = plan.view(source).text_starts().tolist()
    for name, start in zip(plan.names(), starts, strict=True):
        stop = start + len(tokens[name.example_id])
        assert stream[start - len(lead) : start] == lead
        assert stream[stop : stop + len(trail)] == trail


@given(plans(), st.data())
@settings(max_examples=40, deadline=None)
def test_contained_copies_are_in_one_window_of_their_training_range(made, data):
    source, examples, tokens, plan = made
    placement = data.draw(placements().filter(lambda item: item.contained))
    # Short documents, so that a place between two of them is found.
    source = random_source(source.n_tokens, seed=plan.facts.seed, documents=600)
    plan = plan_for(
        examples, tokens, placement, source=source, seed=plan.facts.seed, copies=Copies(fixed=2)
    )
    view = plan.view(source)
    order = window_order(plan.facts.seed, 0, view.n_windows).tolist()
    low, high = (int(share * view.n_windows) for share in placement.between)
    allowed = set(order[low:high])
    starts = view.payload_starts().tolist()
    for start, length in zip(starts, plan.copies["payload_length"].to_pylist(), strict=True):
        assert start // 64 == (start + length - 1) // 64
        assert start // 64 in allowed


def assert_other_windows_are_unchanged(made):
    source, _, _, plan = made
    view, context = plan.view(source), plan.facts.context
    clean = clean_view(source, tokens=plan.facts.budget, context=context)
    touched = {anchor // context for anchor in plan.copies["anchor"].to_pylist()}
    for window in range(view.n_windows):
        same = np.array_equal(view.window(window), clean.window(window))
        assert same == (window not in touched)
    # The window's background is the beginning of its original tokens, in order.
    for window in touched:
        spiked, original = view.window(window), clean.window(window).tolist()
        start = window * context
        inside = np.zeros(context, dtype=bool)
        lengths = plan.copies["payload_length"].to_pylist()
        for first, length in zip(view.payload_starts().tolist(), lengths, strict=True):
            if first // context == window:
                inside[first - start : first - start + length] = True
        remaining = spiked[~inside].tolist()
        assert remaining == original[: len(remaining)]


def documents_start_where_brute_force_says(made):
    source, _, _, plan = made
    view, context = plan.view(source), plan.facts.context
    stream = composed(source, plan)
    expected = {0} | {int(place) + 1 for place in np.flatnonzero(stream == END)}
    if plan.facts.separator == "start_end" and plan.facts.policy != "document":
        expected |= set(view.payload_starts().tolist())
    if plan.facts.policy == "window":
        payloads = {}
        for row in plan.copies.to_pylist():
            window = row["anchor"] // context
            payloads[window] = payloads.get(window, 0) + row["payload_length"]
        for window, payload in payloads.items():
            gone = range((window + 1) * context - payload, (window + 1) * context)
            # A document begins with the copy that precedes its first token.
            lost = set(gone) & set(source.doc_starts.tolist())
            if lost - set(plan.copies["anchor"].to_pylist()):
                expected.add((window + 1) * context)
        # The end token before it may be gone; a document that begins with a window still does.
        expected |= {start for start in source.doc_starts.tolist() if start % context == 0}
    expected = {start for start in expected if start < plan.facts.budget}
    assert view.document_starts().tolist() == sorted(expected)


def test_positions_and_training_times_are_uniform():
    """30,000 copies: windows, offsets in them, and the time at which they are trained on."""
    examples, tokens = spiked_examples(300, 0)
    tokens = {name: ids[:2] for name, ids in tokens.items()}
    source = random_source(1_920_000, seed=1, vocabulary=90)
    for placement in (Placement(policy="window"), Placement(straddle="forbid")):
        plan = plan_for(examples, tokens, placement, source=source, copies=Copies(fixed=100))
        starts = plan.view(source).payload_starts()
        rank = np.empty(30_000, dtype=np.int64)
        rank[window_order(0, 0, 30_000)] = np.arange(30_000)
        for values, limit in ((starts, 1_920_000), (rank[starts // 64], 30_000)):
            counts, _ = np.histogram(values, bins=50, range=(0, limit))
            assert chisquare(counts).pvalue > 1e-4
        # Alone in its window, a copy of two tokens has 63 places.
        windows, index, sizes = np.unique(starts // 64, return_index=True, return_counts=True)
        offsets = starts[index[sizes == 1]] % 64
        counts = np.bincount(offsets, minlength=63)
        assert len(counts) == 63
        assert chisquare(counts).pvalue > 1e-4


def test_full_windows_have_no_free_token():
    """Twelve copies of a quarter window each, three windows: no token is left over."""
    placement = Placement(policy="window")
    source = random_source(3 * 64 + 10, seed=4)
    examples, tokens = spiked_examples(12, 0)
    tokens = {name: np.resize(ids, 16) for name, ids in tokens.items()}
    plan = plan_for(examples, tokens, placement, source=source, copies=Copies(fixed=1))
    stream = composed(source, plan)
    assert (stream[: 3 * 64] >= 100).all()
    assert (stream[3 * 64 :] < 100).all()


def test_payload_beyond_the_range_capacity_is_rejected():
    source = random_source(6400, seed=4)
    examples, tokens = spiked_examples(30, 0)
    tokens = {name: np.resize(ids, 30) for name, ids in tokens.items()}
    placement = Placement(policy="window", between=(0, 0.1))
    with pytest.raises(InputError, match=r"need 900 tokens, more than the 10 windows of 64"):
        plan_for(examples, tokens, placement, source=source, copies=Copies(fixed=1))
    # Room for 640 tokens, but a window of 64 fits two copies of 30.
    with pytest.raises(InputError, match=r"no window with room .* fill 98%|fill 9\d%"):
        plan_for(examples[:21], tokens, placement, source=source, copies=Copies(fixed=1))


def test_example_longer_than_a_window_is_rejected():
    source = random_source(6400, seed=4)
    examples, tokens = spiked_examples(3, 0)
    tokens["toy-1"] = np.arange(100, 164)
    plan_for(examples, tokens, Placement(policy="window"), source=source)
    with pytest.raises(InputError, match=r"row 1 of toy takes 66 tokens .* one window of 64"):
        plan_for(
            examples, tokens, Placement(policy="window", separator="end"), source=source,
            copies=Copies(fixed=1),
        )  # fmt: skip


def test_missing_place_between_documents_is_rejected():
    source = random_source(6400, seed=4, documents=0)
    examples, tokens = spiked_examples(1, 0)
    # The only document starts in window 0, which is trained on in the other half.
    late = window_order(0, 0, 100).tolist().index(0) >= 50
    placement = Placement(policy="document", between=(0, 0.5) if late else (0.5, 1))
    with pytest.raises(InputError, match="fit between no two documents"):
        plan_for(examples, tokens, placement, source=source, copies=Copies(fixed=1))


def test_copy_between_documents_takes_the_first_place_after_its_draw():
    """Documents and copies of half a window each, and half a window that is not trained on."""
    starts = np.arange(0, 703, 32)
    source = ArraySource(np.ones(703, dtype=np.int64), starts)
    examples, tokens = spiked_examples(8, 0)
    tokens = {name: np.resize(ids, 31) for name, ids in tokens.items()}
    placement = Placement(policy="document", straddle="forbid")
    touching = 0
    for seed in range(20):
        plan = plan_for(
            examples, tokens, placement, source=source, copies=Copies(fixed=1), seed=seed
        )
        expected, place, last_start = [], -64, -1
        for position in sorted(plan.copies["drawn"].to_pylist()):
            if position <= last_start:
                place += 32
            else:
                # A document separates it from the copies before.
                place = last_start = max(place + 64, -(-position // 32) * 32)
            expected.append(place)
            touching += place == position
        assert sorted(plan.view(source).payload_starts().tolist()) == expected
        assert expected[-1] + 32 <= 640
    assert touching


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"between": (0, 0.5), "straddle": "allow"}, "different times"),
        ({"policy": "document", "separator": "none"}, "must end with an end token"),
    ],
)
def test_contradicting_settings_are_rejected(given_settings, message):
    with pytest.raises(ValidationError, match=message):
        Placement(**given_settings)


@pytest.mark.parametrize("policy", ["splice", "window", "document"])
@pytest.mark.parametrize("straddle", [None, "forbid"])
def test_added_dataset_changes_only_what_the_documentation_lists(policy, straddle):
    """docs/copies.md: another dataset may move anchors, windows or places in the stream."""
    if policy == "window" and straddle is None:
        straddle = "forbid"
    placement = Placement(policy=policy, straddle=straddle)
    source = random_source(200_000, seed=9, documents=9000)
    examples, tokens = spiked_examples(60, 10)
    others, other_tokens = spiked_examples(80, 10, dataset="other")
    alone = plan_for(examples, tokens, placement, source=source)
    joined = plan_for(others + examples, {**tokens, **other_tokens}, placement, source=source)

    def rows(plan):
        starts = plan.view(source).payload_starts().tolist()
        return {
            (row["example_id"], row["copy"]): {**row, "place": start}
            for row, start in zip(plan.copies.to_pylist(), starts, strict=True)
            if row["dataset"] == "toy" and row["redraws"] == 0
        }

    if policy == "document":
        assert set(alone.copies["anchor"].to_pylist()) <= set(source.doc_starts.tolist())
    before, after = rows(alone), rows(joined)
    shared = before.keys() & after.keys()
    assert len(shared) > 100

    def same(column):
        return sum(before[key][column] == after[key][column] for key in shared) / len(shared)

    assert same("drawn") == 1
    if policy == "window":
        assert same("anchor") > 0.95
        windows = [before[key]["anchor"] // 64 == after[key]["anchor"] // 64 for key in shared]
        assert all(windows)
    elif straddle is None:
        assert same("anchor") == 1
        assert same("place") < 0.2
    elif policy == "splice":
        # Its window and offset in the stream stay, and the background moves around it.
        assert same("place") > 0.95
        assert same("anchor") < 0.2
