import json

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from detect.token_statistics import STATISTICS_FILE, read_statistics, unscored, write_statistics
from tests.detect.evidence_samples import random_statistics

FIELDS = ("ids", "log_probability", "mean", "deviation", "entropy", "rank")


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 9), max_size=12))
def test_what_is_read_is_what_was_written(sizes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("statistics")
    rows = [random_statistics(n, seed=n) if n else unscored("empty text") for n in sizes]
    names = [f"e{index}" for index in range(len(rows))]
    write_statistics(folder, names, rows, record={"view": "text", "policy": {"bos": "auto"}})
    found = read_statistics(folder)
    assert list(found) == names
    for name, row in zip(names, rows, strict=True):
        assert found[name].reason == row.reason
        for field in FIELDS:
            one, other = getattr(found[name], field), getattr(row, field)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    with pa.ipc.open_file(folder / STATISTICS_FILE) as reader:
        record = json.loads(reader.schema.metadata[b"spikein"])
    assert record == {"view": "text", "policy": {"bos": "auto"}}


def test_many_rows_span_several_batches(tmp_path):
    rows = [random_statistics(1 + index % 3, seed=index % 7) for index in range(5000)]
    write_statistics(tmp_path, [str(index) for index in range(5000)], rows)
    found = read_statistics(tmp_path)
    assert len(found) == 5000
    np.testing.assert_array_equal(found["4999"].ids, rows[4999].ids)
