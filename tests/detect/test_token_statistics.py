import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detect.token_statistics import (
    PACKED_FILE,
    STATISTICS_FILE,
    TemperedStatistics,
    packed,
    read_statistics,
    token_columns,
    unscored,
    write_statistics,
)
from inject.errors import InputError
from tests.detect.evidence_samples import DISTRIBUTION, random_statistics

FIELDS = ("ids", "log_probability", *DISTRIBUTION, "offsets")


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 9), max_size=12))
def test_token_statistics_round_trip(sizes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("statistics")
    rows = [random_statistics(n, seed=n) if n else unscored("empty text") for n in sizes]
    names = [f"e{index}" for index in range(len(rows))]
    write_statistics(folder, names, rows, record={"view": "text", "policy": {"bos": "auto"}})
    restored = read_statistics(folder)
    assert list(restored) == names
    for name, row in zip(names, rows, strict=True):
        assert restored[name].reason == row.reason
        for field in FIELDS:
            actual, other = getattr(restored[name], field), getattr(row, field)
            assert actual.dtype == other.dtype
            np.testing.assert_array_equal(actual, other)
    with pa.ipc.open_file(folder / STATISTICS_FILE) as reader:
        record = json.loads(reader.schema.metadata[b"spikein"])
    assert record == {"view": "text", "policy": {"bos": "auto"}}


def test_columns_missing_from_a_server_stay_absent(tmp_path):
    integers = np.array([3, 4], np.int32)
    offsets = np.array([[0, 1], [1, 2]], np.int32)
    columns = {
        "ids": integers,
        "log_probability": np.array([-1, -2], np.float32),
        "offsets": offsets,
    }
    rows = {
        "bare": token_columns(**columns),
        "ranked": token_columns(**columns, rank=integers),
        "unread": unscored("empty text"),
    }
    write_statistics(tmp_path, list(rows), list(rows.values()))
    with pa.ipc.open_file(tmp_path / STATISTICS_FILE) as reader:
        pq.write_table(packed(reader.read_all()), tmp_path / PACKED_FILE)
    for _ in ("packed", "plain"):
        restored = read_statistics(tmp_path)
        assert {field for field in FIELDS if hasattr(restored["bare"], field)} == {*columns}
        assert {field for field in FIELDS if hasattr(restored["ranked"], field)} == {
            *columns,
            "rank",
        }
        assert restored["unread"].reason == "empty text"
        for name, values in columns.items():
            np.testing.assert_array_equal(getattr(restored["ranked"], name), values)
        (tmp_path / PACKED_FILE).unlink(missing_ok=True)


def test_inverse_temperatures_round_trip_and_unscored_rows_have_none(tmp_path):
    rows = [
        replace(
            random_statistics(size, seed=size),
            tempered={
                beta: TemperedStatistics(
                    log_probability=np.full(size, -beta, np.float32),
                    mean_log_prob=np.arange(size, dtype=np.float32),
                    std_log_prob=np.full(size, 1 / beta, np.float32),
                )
                for beta in (2**-0.1, 4.0)
            },
        )
        for size in (3, 1)
    ]
    write_statistics(tmp_path, ["a", "none", "b"], [rows[0], unscored("empty text"), rows[1]])
    restored = read_statistics(tmp_path)
    assert restored["none"].tempered == {}
    for name, row in (("a", rows[0]), ("b", rows[1])):
        assert list(restored[name].tempered) == [2**-0.1, 4.0]
        for beta, tempered in row.tempered.items():
            for field in ("log_probability", "mean_log_prob", "std_log_prob"):
                np.testing.assert_array_equal(
                    getattr(restored[name].tempered[beta], field), getattr(tempered, field)
                )


def test_statistics_of_an_older_version_are_rejected(tmp_path):
    write_statistics(tmp_path, ["a"], [random_statistics(3)])
    path = tmp_path / STATISTICS_FILE
    with pa.ipc.open_file(path) as reader:
        table = reader.read_all()
    old = table.drop_columns(["top_log_probability", "top_id", "offsets"])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, old.schema) as writer:
        writer.write_table(old)
    with pytest.raises(InputError, match=r"lacks top_log_probability, top_id, offsets.*older"):
        read_statistics(tmp_path)
