"""The ledger against a brute-force search through the windows that were fed."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.stream.exposures import SCHEMA, ExposureRecorder, copy_outcomes
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
