"""Token statistics of version 0.1: their columns, and their attributes in detectors."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from detect.token_statistics import (
    PACKED_FILE,
    STATISTICS_FILE,
    TokenStatistics,
    read_statistics,
    write_statistics,
)
from inject.reading.former_names import FormerNameWarning
from tests.detect.evidence_samples import DISTRIBUTION, random_statistics

FIELDS = ("ids", "log_probability", *DISTRIBUTION, "offsets")


def write_former(folder: Path, rows: list[TokenStatistics]) -> None:
    """Write statistics as version 0.1 did."""
    write_statistics(folder, [str(number) for number in range(len(rows))], rows)
    path = folder / STATISTICS_FILE
    with pa.ipc.open_file(path) as reader:
        table = reader.read_all()
    names = [
        name.replace("mean_log_prob", "mean").replace("std_log_prob", "deviation")
        for name in table.column_names
    ]
    former = table.rename_columns(names)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, former.schema) as writer:
        writer.write_table(former)


@pytest.mark.parametrize("packed_rows", [False, True])
def test_statistics_of_version_0_1_are_read_with_a_note(tmp_path, packed_rows):
    rows = [random_statistics(size, seed=size) for size in (3, 5)]
    write_former(tmp_path, rows)
    if packed_rows:
        with pa.ipc.open_file(tmp_path / STATISTICS_FILE) as reader:
            pq.write_table(reader.read_all().drop(["entropy"]), tmp_path / PACKED_FILE)
    with pytest.warns(FormerNameWarning, match="mean, deviation is now called mean_log_prob, std_"):
        found = read_statistics(tmp_path)
    for number, row in enumerate(rows):
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(found[str(number)], name), getattr(row, name))


def test_former_attributes_of_statistics_are_read_with_a_note():
    row = random_statistics(4)
    with pytest.warns(
        FormerNameWarning, match=r"\.deviation is now called statistics\.std_log_prob"
    ):
        assert row.deviation is row.std_log_prob
    with pytest.warns(FormerNameWarning, match=r"\.mean is now called statistics\.mean_log_prob"):
        assert row.mean is row.mean_log_prob
