"""What a model had seen after a step, against a walk through the windows that were fed."""

from hypothesis import given, settings

from inject.stream.exposures import ExposureRecorder, exposure_until, seen_copy_counts
from inject.stream.order import window_order
from tests.inject.stream.test_view import plans
from tests.inject.streams import whole_texts

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
@settings(max_examples=40, deadline=None)
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
    import pyarrow as pa

    from inject.stream.exposures import SCHEMA

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
