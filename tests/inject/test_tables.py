"""Unreadable tables are named by all readers."""

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.scores.table import read_scores
from detect.task_accuracy.answers import read_accuracy
from detect.token_statistics import read_statistics
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.stream.exposures import read_exposures
from inject.tables import csv_text, read_parquet
from inject.variants.rendition import read_renditions
from train.loop.log import read_log

READERS = {
    "examples.parquet": read_examples,
    "renditions.parquet": read_renditions,
    "log.parquet": read_log,
    "accuracy.parquet": read_accuracy,
    "statistics.arrow": read_statistics,
    "other.parquet": lambda folder: read_parquet(folder / "other.parquet"),
    "exposures.parquet": read_exposures,
    "scores.parquet": read_scores,
}


@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 8])
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_table_is_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        READERS[name](tmp_path)
    assert str(tmp_path / name) in str(caught.value)
    assert "run again" in str(caught.value)


def test_a_truncated_or_missing_table_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read"):
        read_parquet(path)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.parquet: is missing"):
        read_parquet(path)


FOREIGN = st.text(st.sampled_from("=+-@\t\r\n,;'\" aé1.(e"), max_size=12)


@given(
    st.lists(
        st.tuples(
            FOREIGN, st.floats(allow_infinity=False, allow_nan=False), st.integers(), FOREIGN
        ),
        max_size=6,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_cells_are_never_formulas_and_numbers_round_trip(rows, end):
    names = ["=id", "score", "n", "@other"]
    lines = list(csv.reader(io.StringIO(csv_text(names, rows, end=end), newline="")))
    assert lines[0] == ["'=id", "score", "n", "'@other"]
    assert len(lines) == len(rows) + 1
    for (first, score, count, second), cells in zip(rows, lines[1:], strict=True):
        assert (float(cells[1]), int(cells[2])) == (score, count)
        for text, cell in ((first, cells[0]), (second, cells[3])):
            assert cell in (text, f"'{text}")
            if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and cell != "-":
                float(cell)
