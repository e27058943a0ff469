"""The quickstart's metrics are those of before, to the last bit: what was rebuilt moved no number.

The reference was made by the code before the rooms were sorted, with the detectors of that time;
rows of other detectors stand beside theirs and move none of them. Bits can be compared only where
the machine computes as the one of the reference did; elsewhere the rows are compared, and the
test says why it stopped there.
"""

import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as pq
import pytest

from tests.spikein.fingerprint import METRICS, RECORD, fingerprint

VALUES = ("value", "low", "high")


def bits(column: pa.ChunkedArray) -> list[bytes]:
    """Return numbers as their bytes, so that NaN equals NaN and −0 is not 0."""
    return [struct.pack("<d", value) for value in column.to_pylist()]


def plain(column: pa.ChunkedArray) -> list[object]:
    """Return texts and counts as they are, and numbers as their bytes."""
    return bits(column) if pa.types.is_floating(column.type) else column.to_pylist()


def test_bits_tell_what_equality_does_not():
    one, other = (pa.chunked_array([[value]]) for value in (0.0, -0.0))
    assert bits(one) != bits(other)
    nan = pa.chunked_array([[float("nan")]])
    assert bits(nan) == bits(nan)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_metrics_of_the_quickstart_are_equal_to_the_last_bit(quickstart_run: Path):
    before, every = pq.read_table(METRICS), pq.read_table(quickstart_run / "metrics.parquet")
    now = every.filter(compute.is_in(every["detector"], compute.unique(before["detector"])))
    recorded, here = json.loads(RECORD.read_text(encoding="utf-8")), fingerprint()
    assert now.schema.equals(before.schema)
    if here["texts"] != recorded["texts"]:
        pytest.skip(f"the background is other text: {here['texts']}, not {recorded['texts']}")
    for name in set(before.column_names) - set(VALUES):
        assert plain(now[name]) == plain(before[name]), name
    if here["arithmetic"] != recorded["arithmetic"]:
        pytest.skip(
            "the rows are equal; their values cannot be compared, because this machine computes "
            f"otherwise: {here['arithmetic']}, not {recorded['arithmetic']}"
        )
    for name in VALUES:
        assert bits(now[name]) == bits(before[name]), name
