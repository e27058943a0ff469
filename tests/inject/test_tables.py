"""Tables that cannot be read are named, whoever reads them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from detect.scoring import read_scores
from detect.task_accuracy.answers import read_accuracy
from detect.token_statistics import read_statistics
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.stream.exposures import read_exposures
from inject.tables import read_parquet
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


@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1\0\0", bytes(range(256)) * 8])
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


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x", "x"]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet") == table
    assert read_parquet(tmp_path / "a.parquet", columns=("b",)).column_names == ["b"]
    repeated = read_parquet(tmp_path / "a.parquet", repeated=("b",))
    assert pa.types.is_dictionary(repeated.schema.field("b").type)
