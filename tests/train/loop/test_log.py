from pathlib import Path

import pytest

from inject.errors import InputError
from train.loop.log import LogRow, read_log, write_log


def test_a_log_comes_back_as_it_was(tmp_path: Path) -> None:
    rows = [LogRow(1, 64, 6.25, 1e-3, 5000.0, 0.4), LogRow(2, 96, 0.1 + 0.2, 5e-4, 4999.5, 0.41)]
    write_log(tmp_path, rows)
    assert read_log(tmp_path) == rows
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"log\.parquet"):
        read_log(tmp_path)
