"""The ledger against a brute-force search through the windows that were fed."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.stream.exposures import SCHEMA, ExposureRecorder, copy_outcomes, seen_copy_counts
from inject.stream.order import window_order
from tests.inject.stream.test_view import plans
from tests.inject.streams import naive_find, whole_texts


def run(source, tokens, plan, *, epochs=1, batch=3, seed=0, stop_after=None, spoil=None):
    """Feed windows as the loop does; return the ledger's rows and the windows fed."""
    view = plan.view(source)
    ledger = ExposureRecorder(view, plan.names(), whole_texts(tokens))
    fed = []
    order = np.concatenate(
        [window_order(seed, epoch, view.n_windows) for epoch in range(epochs)]
    ).astype(int)
    for position, window in enumerate(order[:stop_after]):
        ids = view.window(int(window))
        if spoil is not None:
            ids = spoil(ids)
        record = {
            "epoch": position // max(view.n_windows, 1),
            "step": position // batch + 1,
            "window": int(window),
            "tokens_before": position * view.context,
        }
        ledger.record(**record, ids=ids)
        fed.append((record, ids))
    return ledger.table().to_pylist(), fed


@given(plans())
@settings(max_examples=40, deadline=None)
def test_whole_copies_are_those_that_brute_force_finds(made):
    source, examples, tokens, plan = made
    rows, fed = run(source, tokens, plan, epochs=2)
    claimed = sorted(
        (row["example_id"], row["epoch"], row["step"], row["window"], row["start"], row["stop"],
         row["tokens_before"])
        for row in rows
        if row["status"] == "whole"
    )  # fmt: skip
    found = sorted(
        (name, record["epoch"], record["step"], record["window"], start, start + len(text),
         record["tokens_before"] + start)
        for record, ids in fed
        for name, text in tokens.items()
        for start in naive_find(ids, text)
    )  # fmt: skip
    assert claimed == found
    assert all(row["intact"] == (row["status"] == "whole") for row in rows)


@given(plans())
@settings(max_examples=40, deadline=None)
def test_fragments_and_whole_copies_make_up_what_the_windows_hold(made):
    """Every spiked token in every fed window belongs to exactly one row of the ledger."""
    source, examples, tokens, plan = made
    rows, fed = run(source, tokens, plan)
    by_window = {}
    for row in rows:
        if row["status"] != "never reached":
            by_window.setdefault(row["window"], []).append(row)
    for record, ids in fed:
        spiked = set(np.flatnonzero(ids >= 100).tolist())
        claimed = []
        for row in by_window.get(record["window"], []):
            text = tokens[row["example_id"]]
            assert row["status"] in ("whole", "fragment")
            assert np.array_equal(
                ids[row["start"] : row["stop"]], text[row["text_start"] : row["text_stop"]]
            )
            claimed.extend(range(row["start"], row["stop"]))
        assert len(claimed) == len(set(claimed))
        assert set(claimed) == spiked


@given(plans())
@settings(max_examples=40, deadline=None)
def test_what_was_never_reached_says_so(made):
    source, _, tokens, plan = made
    full, _ = run(source, tokens, plan)
    part, fed = run(source, tokens, plan, stop_after=2)
    windows = {record["window"] for record, _ in fed}
    context = plan.facts.context
    starts = plan.view(source).text_starts().tolist()
    for row, start in zip(plan.copies.to_pylist(), starts, strict=True):
        touched = set(range(start // context, (start + row["text_length"] - 1) // context + 1))
        statuses = {
            other["status"]
            for other in part
            if (other["example_id"], other["copy"]) == (row["example_id"], row["copy"])
        }
        assert (statuses == {"never reached"}) == (not touched & windows)
    # In the full run only the last partial window is never trained on.
    limit = plan.view(source).n_windows * context
    never = {(row["example_id"], row["copy"]) for row in full if row["status"] == "never reached"}
    assert never == {
        (row["example_id"], row["copy"])
        for row, start in zip(plan.copies.to_pylist(), starts, strict=True)
        if start >= limit
    }


@given(plans())
@settings(max_examples=40, deadline=None)
def test_copies_seen_counts_copies_with_all_their_tokens(made):
    source, _, tokens, plan = made
    view = plan.view(source)
    limit = view.n_windows * view.context
    expected = {}
    for row, start in zip(plan.copies.to_pylist(), view.text_starts().tolist(), strict=True):
        if start + row["text_length"] <= limit:
            expected[row["example_id"]] = expected.get(row["example_id"], 0) + 1
    ledger = ExposureRecorder(view, plan.names(), whole_texts(tokens))
    for epoch in range(2):
        for window in range(view.n_windows):
            ledger.record(
                epoch=epoch, step=1, window=window, tokens_before=0, ids=view.window(window)
            )
    assert seen_copy_counts(ledger.table()) == expected


@given(plans())
@settings(max_examples=30, deadline=None)
def test_parts_of_a_run_add_up_to_the_whole(made):
    """Two ranks that take turns, and a restart in the middle, record what one run records."""
    source, _, tokens, plan = made
    view = plan.view(source)
    order = window_order(0, 0, view.n_windows).tolist()

    def ledger():
        return ExposureRecorder(view, plan.names(), whole_texts(tokens))

    def feed(target, position, rank=0):
        target.record(
            epoch=0,
            step=position // 4,
            window=order[position],
            tokens_before=position * view.context,
            ids=view.window(order[position]),
            rank=rank,
        )

    alone, first, *ranks = (ledger() for _ in range(4))
    half = len(order) // 2
    for position in range(len(order)):
        feed(alone, position)
        feed(first if position < half else ranks[position % 2], position, rank=position % 2)
    merged = ledger()
    for part in (ranks[1], first, ranks[0]):
        merged.restore(part.table())
    assert merged.table().drop_columns(["rank"]).equals(alone.table().drop_columns(["rank"]))


@pytest.mark.parametrize("position", [0, 1])
def test_a_changed_token_is_noticed(position):
    from inject.plan.make_plan import PlanSettings, make_plan
    from inject.plan.settings import Copies, Placement
    from tests.inject.streams import random_source, separators_of, spiked_examples

    source = random_source(2000, seed=4)
    examples, tokens = spiked_examples(10, 0)
    plan = make_plan(
        examples,
        tokens,
        PlanSettings(
            copies=Copies(fixed=2), placement=Placement(), budget=2000, context=64, seed=4
        ),
        source=source,
        separators=separators_of(Placement()),
        vocabulary=60_000,
    )

    def spoil(ids):
        changed = ids.copy()
        spiked = np.flatnonzero(ids >= 100)
        if len(spiked) > position:
            changed[spiked[position]] += 1
        return changed

    rows, _ = run(source, tokens, plan, spoil=spoil)
    altered = [row for row in rows if row["status"] == "altered"]
    assert altered
    assert not any(row["intact"] for row in altered)
    assert sum(copies_seen_of(rows).values()) < 20


def copies_seen_of(rows):
    import pyarrow as pa

    from inject.stream.exposures import SCHEMA

    return seen_copy_counts(pa.Table.from_pylist(rows, schema=SCHEMA))


@given(plans(), st.integers(1, 3), st.integers(0, 12), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_copy_is_whole_altered_fed_in_part_or_never_reached(made, epochs, stop, spoiled):
    """Against the stream itself: which of a copy's tokens stood in windows that were fed."""
    source, _, tokens, plan = made
    view = plan.view(source)

    def spoil(ids):
        return np.where(ids % 7 == 3, ids + 1, ids) if spoiled else ids

    rows, fed = run(source, tokens, plan, epochs=epochs, stop_after=stop, spoil=spoil)
    expected = dict.fromkeys(("whole", "altered", "partly", "never"), 0)
    for name, start in zip(plan.names(), view.text_starts().tolist(), strict=True):
        text = tokens[name.example_id]
        held = [
            {
                place: int(ids[place - record["window"] * view.context])
                for record, ids in fed
                if record["epoch"] == epoch
                for place in range(start, start + len(text))
                if place // view.context == record["window"]
            }
            for epoch in range(epochs)
        ]
        if any(one[place] != text[place - start] for one in held for place in one):
            expected["altered"] += 1
        elif any(len(one) == len(text) for one in held):
            expected["whole"] += 1
        else:
            expected["partly" if any(held) else "never"] += 1
    found = copy_outcomes(pa.Table.from_pylist(rows, schema=SCHEMA))
    assert {kind: getattr(found, kind) for kind in expected} == expected
    assert found.planned == len(plan.names()) == sum(expected.values())
    assert len(found.first_altered) == min(found.altered, 20)
