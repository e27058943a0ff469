"""Tables of version 0.1 are read under the current names of their columns, with a note."""

import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inject.reading.former_names import FormerNameWarning, current_columns
from inject.tables import read_parquet


def test_former_columns_have_their_current_names(tmp_path):
    path = tmp_path / "models.parquet"
    written = pa.table({"words": ["lr 1"], "seed": [0]}, metadata={"key": "kept"})
    pq.write_table(written, path)
    with pytest.warns(
        FormerNameWarning, match=r"models.parquet: words is now called label; spikein"
    ):
        table = read_parquet(path)
    assert table.to_pydict() == {"label": ["lr 1"], "seed": [0]}
    assert table.schema.metadata == {b"key": b"kept"}


def test_current_tables_and_other_files_are_unchanged(tmp_path):
    for name, column in (("models.parquet", "label"), ("other.parquet", "words")):
        pq.write_table(pa.table({column: ["x"]}), tmp_path / name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_parquet(tmp_path / name).column_names == [column]


def test_statistics_at_inverse_temperatures_are_renamed():
    former = ["example_id", "mean", "deviation", "mean@0.5", "deviation@0.5", "log_probability@0.5"]
    assert current_columns("statistics.arrow", former) == [
        "example_id", "mean_log_prob", "std_log_prob", "mean_log_prob@0.5", "std_log_prob@0.5",
        "log_probability@0.5",
    ]  # fmt: skip
