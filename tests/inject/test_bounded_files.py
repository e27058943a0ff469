"""No file of a data folder blocks a reader forever or fills its memory or the disk."""

import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inject.corpus.background.hub import HubSource
from inject.errors import InputError
from inject.examples.datasets.gpqa import gpqa_rows
from inject.examples.datasets.source import DatasetSource
from inject.reading.rows import files_identity, read_rows

_MEMORY = 2 << 30
_SCRIPT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
from inject.errors import InputError
from inject.reading.rows import read_rows
from scripts.bench.injection.memory import peak_mib
try:
    for row in read_rows(sys.argv[1], purpose="test"):
        pass
except InputError as error:
    print(error)
    print(round(peak_mib()))
    sys.exit(2)
"""


def read_apart(path: Path, *, seconds: int = 120) -> subprocess.CompletedProcess:
    """Read rows in a separate process, with little memory and a time limit."""
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(memory=_MEMORY), str(path)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=Path(__file__).parents[2],
    )


def write_bomb(path: Path, *, before: bytes, unit: bytes, times: int, after: bytes) -> int:
    """Write a packed file of many equal members quickly; return its unpacked size."""
    zstd = partial(pa.compress, codec="zstd", asbytes=True)
    pack = zstd if path.suffix == ".zst" else gzip.compress
    member = pack(unit)
    with path.open("wb") as file:
        file.write(pack(before))
        for _ in range(times):
            file.write(member)
        file.write(pack(after))
    return len(before) + len(unit) * times + len(after)


@pytest.mark.parametrize(
    ("name", "before", "unit", "after"),
    [
        ("one_line.jsonl.gz", b'{"text": "', b"a" * (1 << 20), b'"}\n'),
        ("array.json.gz", b'[{"text": "', b"a" * (1 << 20), b'"}]'),
        ("lines.jsonl.zst", b"", b'{"text": "again"}\n' * (1 << 16), b""),
        ("quoted.csv.gz", b'text\n"', (b"a" * 63 + b"\n") * (1 << 14), b'"\n'),
    ],
)
def test_gzip_bomb_is_named_within_bounded_memory(tmp_path, name, before, unit, after):
    path = tmp_path / name
    unpacked = write_bomb(path, before=before, unit=unit, times=10_000, after=after)
    assert unpacked > 9 * (1 << 30) > 250 * path.stat().st_size
    done = read_apart(path)
    assert done.returncode == 2, done.stderr[-500:]
    message, peak = done.stdout.strip().rsplit("\n", 1)
    assert str(path) in message
    assert "unpacks to more than 200 times its size" in message
    assert "unpack it yourself" in message
    assert int(peak) < 684
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_endless_line_is_reported_with_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr("inject.bounded_files.ROW_BYTES", 1 << 23)
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "short"}\n' + json.dumps({"text": "x" * (1 << 24)}) + "\n")
    rows = read_rows(str(path), purpose="test")
    assert next(rows).values == {"text": "short"}
    with pytest.raises(InputError, match=r"a\.jsonl:2: test: a line of more than 8 MiB"):
        next(rows)


def test_unterminated_quoted_field_is_rejected_by_row(tmp_path, monkeypatch):
    monkeypatch.setattr("inject.bounded_files.ROW_BYTES", 1 << 16)
    path = tmp_path / "a.csv"
    path.write_text("text\nfine\n" + '"' + "line\n" * (1 << 15))
    with pytest.raises(InputError, match=r"a\.csv:3: test: a row of more than 64 KiB"):
        list(read_rows(str(path), purpose="test"))


@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_files_read_at_once_are_bounded(tmp_path, monkeypatch, name):
    monkeypatch.setattr("inject.bounded_files.WHOLE_BYTES", 1 << 16)
    path = tmp_path / name
    path.write_text("[\n" + ",\n".join(['{"text": "row"}'] * 8000) + "\n]\n")
    with pytest.raises(InputError, match=r"larger than 64 KiB.*JSON Lines"):
        list(read_rows(str(path), purpose="test"))


def test_small_repetitive_text_and_large_ordinary_text_are_not_bombs(
    tmp_path,
):
    rows = 200_000
    (tmp_path / "same.jsonl.gz").write_bytes(gzip.compress(b'{"text": "the same line"}\n' * rows))
    assert sum(1 for _ in read_rows(str(tmp_path / "same.jsonl.gz"), purpose="test")) == rows
    random = np.random.Generator(np.random.Philox(key=1))
    letters = random.integers(97, 123, (6, 1 << 20), dtype=np.uint8)
    lines = b"".join(b'{"text": "' + line.tobytes() + b'"}\n' for line in letters)
    (tmp_path / "long.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    texts = [row.values["text"] for row in read_rows(str(tmp_path / "long.jsonl.gz"), purpose="t")]
    assert [text.encode() for text in texts] == [line.tobytes() for line in letters]


def test_parquet_bomb_is_rejected(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a" * (1 << 20)] * 100})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 1 << 17
    with pytest.raises(InputError, match=r"a\.parquet: test: unpacks to more than 200 times"):
        list(read_rows(str(path), purpose="test"))


def test_zip_bomb_in_place_of_gpqa_is_rejected_whatever_its_declared_size(tmp_path):
    path = tmp_path / "gpqa.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dataset/gpqa_main.csv", bytes(300 << 20))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match=r"gpqa_main\.csv: the zip unpacks to more than 64 MiB"):
        list(gpqa_rows(DatasetSource(path=str(path), seed=0)))


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "message", "pattern"),
    [
        (make_pipe, r"is a pipe \(FIFO\)", "{folder}"),
        (make_device, "is a device", "{folder}"),
    ],
)
def test_irregular_file_is_rejected_by_name_without_blocking(tmp_path, make, message, pattern):
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n')
    make(tmp_path / "b.jsonl")
    pattern = pattern.format(folder=tmp_path)
    done = read_apart(Path(pattern), seconds=20)
    assert done.returncode == 2, done.stderr[-500:]
    assert re.search(rf"b\.jsonl: test: {message}", done.stdout)
    with pytest.raises(InputError, match=message):
        files_identity(pattern)


@pytest.mark.parametrize("path", ["folder", "folder/x.zip"])
def test_pipe_in_a_hub_folder_or_as_zip_is_rejected(tmp_path, path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "x.zip")
    with pytest.raises(InputError, match=r"x\.zip: is a pipe"):
        if path == "folder":
            HubSource(kind="hub", id=str(tmp_path / path)).identity()
        else:
            list(gpqa_rows(DatasetSource(path=str(tmp_path / path), seed=0)))


def test_links_to_regular_files_are_read_and_broken_links_are_named(tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "a.jsonl").write_text('{"text": "linked"}\n')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").symlink_to(tmp_path / "hidden" / "a.jsonl")
    assert [row.values for row in read_rows(str(tmp_path / "data"), purpose="t")] == [
        {"text": "linked"}
    ]
    (tmp_path / "data" / "b.jsonl").symlink_to(tmp_path / "gone.jsonl")
    for pattern in (tmp_path / "data", tmp_path / "data" / "*.jsonl"):
        with pytest.raises(InputError, match=r"b\.jsonl: t: a link to nothing"):
            read_rows(str(pattern), purpose="t")
