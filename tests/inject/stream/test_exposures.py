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
    TrainedWindow,
    copy_outcomes,
    exposure_until,
    require_unexposed,
    seen_copy_counts,
    seen_variants,
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
        ledger.record(TrainedWindow(**record), ids)
        fed.append((record, ids))
    return ledger.table().to_pylist(), fed


@given(plans())
@settings(max_examples=20, deadline=None)
def test_whole_copies_and_fragments_match_brute_force(made):
    source, examples, tokens, plan = made
    rows, fed = run(source, tokens, plan, epochs=2)
    claimed = sorted(
        (row["example_id"], row["epoch"], row["step"], row["window"], row["start"], row["stop"],
         row["tokens_before"])
        for row in rows
        if row["status"] == "whole"
    )  # fmt: skip
    brute_force = sorted(
        (name, record["epoch"], record["step"], record["window"], start, start + len(text),
         record["tokens_before"] + start)
        for record, ids in fed
        for name, text in tokens.items()
        for start in naive_find(ids, text)
    )  # fmt: skip
    assert claimed == brute_force
    assert all(row["intact"] == (row["status"] == "whole") for row in rows)

    # Each inserted token of a fed window belongs to exactly one row of the ledger.
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


@given(plans())
@settings(max_examples=15, deadline=None)
def test_parts_of_a_run_add_up_to_the_whole(made):
    """Two alternating ranks, with a restart in between, record the same as one run."""
    source, _, tokens, plan = made
    view = plan.view(source)
    order = window_order(0, 0, view.n_windows).tolist()
    alone, first, *ranks = (
        ExposureRecorder(view, plan.names(), whole_texts(tokens)) for _ in range(4)
    )
    for position, window in enumerate(order):
        part = first if position < len(order) // 2 else ranks[position % 2]
        for target in (alone, part):
            before = position * view.context
            fed = TrainedWindow(0, position // 4, window, before, position % 2)
            target.record(fed, view.window(window))
    merged = ExposureRecorder(view, plan.names(), whole_texts(tokens))
    for part in (ranks[1], first, ranks[0]):
        merged.restore(part.table())
    assert merged.table().equals(alone.table())
    before = alone.recorded()["tokens_before"].to_pylist()
    assert before == sorted(before)


@given(plans(), st.integers(1, 3), st.integers(0, 12), st.booleans())
@settings(max_examples=20, deadline=None)
def test_copies_are_whole_altered_partial_or_never_reached(made, epochs, stop, spoiled):
    """Against the stream itself: the tokens of each copy in windows that were trained on."""
    source, _, tokens, plan = made
    view = plan.view(source)

    def spoil(ids):
        return np.where(ids % 7 == 3, ids + 1, ids) if spoiled else ids

    rows, fed = run(source, tokens, plan, epochs=epochs, stop_after=stop, spoil=spoil)
    expected = dict.fromkeys(("whole", "altered", "partly", "never"), 0)
    for name, start in zip(plan.names(), view.text_starts().tolist(), strict=True):
        text = tokens[name.example_id]
        seen_parts = [
            {
                place: int(ids[place - record["window"] * view.context])
                for record, ids in fed
                if record["epoch"] == epoch
                for place in range(start, start + len(text))
                if place // view.context == record["window"]
            }
            for epoch in range(epochs)
        ]
        if any(part[place] != text[place - start] for part in seen_parts for place in part):
            expected["altered"] += 1
        elif any(len(part) == len(text) for part in seen_parts):
            expected["whole"] += 1
        else:
            expected["partly" if any(seen_parts) else "never"] += 1
    outcomes = copy_outcomes(pa.Table.from_pylist(rows, schema=SCHEMA))
    assert {kind: getattr(outcomes, kind) for kind in expected} == expected
    assert outcomes.planned == len(plan.names()) == sum(expected.values())
    assert len(outcomes.first_altered) == min(outcomes.altered, 20)


# --- what had been seen by a step, against a walk through the windows that were fed

BATCH = 3


def walk_windows(view, plan, fed, step):
    """Copy by copy and epoch by epoch: were all of its windows fed by this step, and any when?"""
    copies, last = {}, {}
    lengths = plan.insertions().text_length
    for name, start, length in zip(plan.names(), view.text_starts(), lengths, strict=True):
        first, final = int(start) // view.context, (int(start + length) - 1) // view.context
        windows = set(range(first, final + 1))
        for epoch in {fed_epoch for fed_epoch, _, _ in fed}:
            steps = {
                window: at for fed_epoch, window, at in fed if fed_epoch == epoch and at <= step
            }
            if windows <= steps.keys():
                copies.setdefault(name.example_id, set()).add(name.copy)
            for window in windows & steps.keys():
                last[name.example_id] = max(last.get(name.example_id, 0), steps[window])
    return {name: (len(copies.get(name, ())), latest) for name, latest in last.items()}


@given(plans())
@settings(max_examples=20, deadline=None)
def test_exposures_by_step_match_a_walk_through_the_windows(made):
    source, _, tokens, plan = made
    view = plan.view(source)
    ledger = ExposureRecorder(view, plan.names(), whole_texts(tokens))
    fed, position = [], 0
    for epoch in range(2):
        for window in window_order(4, epoch, view.n_windows):
            step = position // BATCH + 1
            before = position * view.context
            window_fed = TrainedWindow(epoch, step, int(window), before)
            ledger.record(window_fed, view.window(int(window)))
            fed.append((epoch, int(window), step))
            position += 1
    exposures = ledger.table()
    last = fed[-1][2] if fed else 1
    for step in sorted({1, 2, last // 2, last - 1, last} - {0, -1}):
        assert exposure_until(exposures, step) == walk_windows(view, plan, fed, step)
    assert exposure_until(exposures, 0) == {}
    after = {
        name: seen.copies for name, seen in exposure_until(exposures, last).items() if seen.copies
    }
    assert after == seen_copy_counts(exposures)


def test_truncated_copy_does_not_count_as_seen():
    common = {
        "example_id": "a", "dataset": "d", "variant": "whole", "epoch": 0, "text_length": 8,
        "intact": False,
    }  # fmt: skip
    rows = [
        {**common, "copy": 0, "status": "altered", "step": 1, "text_start": 0, "text_stop": 8},
        {**common, "copy": 1, "status": "fragment", "step": 2, "text_start": 0, "text_stop": 5},
        {**common, "copy": 1, "status": "fragment", "step": 6, "text_start": 5, "text_stop": 8},
        {**common, "copy": 2, "status": "never reached"},
        {**common, "copy": 3, "status": "fragment", "step": 7, "text_start": 0, "text_stop": 5},
    ]
    # The run continues into a second epoch, and ends before the copy's first window.
    second = {**rows[-1], "epoch": 1, "step": 9, "text_start": 5, "text_stop": 8}
    exposures = pa.Table.from_pylist(rows, schema=SCHEMA)
    assert exposure_until(exposures, 1) == {"a": (0, 1)}
    assert exposure_until(exposures, 5) == {"a": (0, 2)}
    assert exposure_until(exposures, 6) == {"a": (1, 6)}
    assert seen_copy_counts(exposures) == {"a": 1}
    exposures = pa.Table.from_pylist([*rows, second], schema=SCHEMA)
    assert exposure_until(exposures, 9) == {"a": (1, 9)}
    outcomes = copy_outcomes(exposures)
    assert (outcomes.whole, outcomes.altered, outcomes.partly, outcomes.never) == (1, 1, 1, 1)


def test_seen_variants_are_listed_unless_all_are_whole():
    def variants_note(*carried):
        rows = [
            {"example_id": name, "variant": variant, "status": status}
            for name, variant, status in carried
        ]
        return seen_variants(pa.Table.from_pylist(rows, schema=SCHEMA))

    whole, unseen = ("a", "whole", "whole"), ("a", "question", NEVER)
    assert variants_note(whole, unseen) == {}
    reworded = [("b", f"paraphrase-{number}", "fragment") for number in (1, 2)]
    assert variants_note(whole, unseen, *reworded) == {"a": "whole", "b": "paraphrase"}
    assert variants_note(whole, ("a", "question", "altered")) == {"a": "mixed"}


# --- copies that a retrained model must not have been trained on


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
def test_single_exposure_is_detected_and_exposures_of_others_are_ignored(tmp_path, status):
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


def test_unreached_copy_counts_as_part_of_the_corpus(tmp_path):
    folder = ledger(tmp_path, exposure("a", 0, "whole"), exposure("b", 0, NEVER))
    with pytest.raises(InputError, match=r"has copies of 1 forgotten.*never reached them: b"):
        require_unexposed(folder, ["b"])
