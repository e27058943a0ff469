"""The ledger against a brute-force search through the windows that were fed."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.stream.exposures import (
    NEVER,
    SCHEMA,
    ExposureRecorder,
    copy_outcomes,
    exposure_until,
    require_unexposed,
    seen_copy_counts,
    write_exposures,
)
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
@settings(max_examples=20, deadline=None)
def test_whole_copies_and_fragments_are_what_brute_force_finds(made):
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

    # Every spiked token in every fed window belongs to exactly one row of the ledger.
    by_window = {}
    for row in rows:
        if row["status"] != "never reached":
            by_window.setdefault((row["epoch"], row["window"]), []).append(row)
    for record, ids in fed:
        spiked = set(np.flatnonzero(ids >= 100).tolist())
        claimed = []
        for row in by_window.get((record["epoch"], record["window"]), []):
            text = tokens[row["example_id"]]
            assert row["status"] in ("whole", "fragment")
            assert np.array_equal(
                ids[row["start"] : row["stop"]], text[row["text_start"] : row["text_stop"]]
            )
            claimed.extend(range(row["start"], row["stop"]))
        assert len(claimed) == len(set(claimed))
        assert set(claimed) == spiked


@given(plans(), st.integers(1, 3), st.integers(0, 12), st.booleans())
@settings(max_examples=20, deadline=None)
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


# --- what had been seen by a step, against a walk through the windows that were fed

BATCH = 3


def walked(view, plan, fed, step):
    """Copy by copy and epoch by epoch: were all of its windows fed by this step, and any when?"""
    copies, last = {}, {}
    lengths = plan.insertions().text_length
    for name, start, length in zip(plan.names(), view.text_starts(), lengths, strict=True):
        first, final = int(start) // view.context, (int(start + length) - 1) // view.context
        windows = set(range(first, final + 1))
        for epoch in {one for one, _, _ in fed}:
            steps = {window: at for one, window, at in fed if one == epoch and at <= step}
            if windows <= steps.keys():
                copies.setdefault(name.example_id, set()).add(name.copy)
            for window in windows & steps.keys():
                last[name.example_id] = max(last.get(name.example_id, 0), steps[window])
    return {name: (len(copies.get(name, ())), latest) for name, latest in last.items()}


@given(plans())
@settings(max_examples=20, deadline=None)
def test_what_was_seen_by_each_step(made):
    source, _, tokens, plan = made
    view = plan.view(source)
    ledger = ExposureRecorder(view, plan.names(), whole_texts(tokens))
    fed, position = [], 0
    for epoch in range(2):
        for window in window_order(4, epoch, view.n_windows):
            step = position // BATCH + 1
            ledger.record(
                epoch=epoch,
                step=step,
                window=int(window),
                tokens_before=position * view.context,
                ids=view.window(int(window)),
            )
            fed.append((epoch, int(window), step))
            position += 1
    exposures = ledger.table()
    last = fed[-1][2] if fed else 1
    for step in sorted({1, 2, last // 2, last - 1, last} - {0, -1}):
        assert exposure_until(exposures, step) == walked(view, plan, fed, step)
    assert exposure_until(exposures, 0) == {}
    after = {
        name: seen.copies for name, seen in exposure_until(exposures, last).items() if seen.copies
    }
    assert after == seen_copy_counts(exposures)


def test_a_copy_that_lost_tokens_was_not_seen():
    common = {
        "example_id": "a", "dataset": "d", "variant": "whole", "epoch": 0, "text_length": 8,
        "intact": False,
    }  # fmt: skip
    rows = [
        {**common, "copy": 0, "status": "altered", "step": 1, "text_start": 0, "text_stop": 8},
        {**common, "copy": 1, "status": "fragment", "step": 2, "text_start": 0, "text_stop": 5},
        {**common, "copy": 1, "status": "fragment", "step": 6, "text_start": 5, "text_stop": 8},
        {**common, "copy": 2, "status": "never reached"},
    ]
    exposures = pa.Table.from_pylist(rows, schema=SCHEMA)
    assert exposure_until(exposures, 1) == {"a": (0, 1)}
    assert exposure_until(exposures, 5) == {"a": (0, 2)}
    assert exposure_until(exposures, 6) == {"a": (1, 6)}


# --- what a retrained model must not have been fed


def exposure(name: str, copy: int, status: str) -> dict:
    return {
        "example_id": name,
        "dataset": "toy",
        "copy": copy,
        "variant": "whole",
        "status": status,
    }


def ledger(folder, *rows):
    write_exposures(folder, pa.Table.from_pylist(list(rows), schema=SCHEMA))
    return folder


@pytest.mark.parametrize("status", ["whole", "fragment", "altered"])
def test_a_single_exposure_is_found_and_those_of_others_are_no_reason(tmp_path, status):
    folder = ledger(
        tmp_path,
        exposure("a", 0, "whole"),
        exposure("b", 3, status),
        exposure("b", 3, status),
        exposure("b", 4, status),
    )
    require_unexposed(folder, {"c", "d"})
    with pytest.raises(InputError, match=r"was fed copies of 1 forgotten.*: b \(2\)") as caught:
        require_unexposed(folder, ["b", "c"])
    assert caught.value.where.endswith("exposures.parquet")


def test_a_copy_that_was_never_reached_is_in_the_corpus_still(tmp_path):
    folder = ledger(tmp_path, exposure("a", 0, "whole"), exposure("b", 0, NEVER))
    with pytest.raises(InputError, match=r"has copies of 1 forgotten.*never reached them: b"):
        require_unexposed(folder, ["b"])
