"""Reading rows: all formats, and all ways to break a file."""

import csv
import gzip
import io
import json
import os
from datetime import date
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.reading.rows import read_rows, source_files, unread_note

ROWS = [{"text": "one"}, {"text": "zwei — ☃"}, {"text": "three\nlines\r\nhere"}]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


PACKED = {".gz": gzip.compress, ".zst": partial(pa.compress, codec="zstd", asbytes=True)}


def read(path: Path | str) -> list[dict]:
    return [row.values for row in read_rows(str(path), purpose="test")]


def error(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    return str(caught.value)


def table(delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([["text"], *([row["text"]] for row in ROWS)])
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", LINES),
        ("a.JSONL", LINES),
        ("a.json", LINES),
        ("a.json", json.dumps(ROWS, indent=2)),
        ("a.csv", table()),
        ("a.tsv", table("\t")),
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_text_formats_give_the_same_rows(tmp_path, name, text, mark):
    data = mark + text.encode()
    (tmp_path / name).write_bytes(data)
    assert read(tmp_path / name) == ROWS
    for packing, packed in PACKED.items():
        path = tmp_path / f"{name}{packing}"
        # Several members, or frames, are one file.
        path.write_bytes(packed(data[:40]) + packed(data[40:]))
        assert read(path) == ROWS


def test_parquet_dates_become_iso_text(tmp_path):
    rows = [{"text": "a", "n": 1, "day": date(2020, 2, 29)}, {"text": None, "n": 2, "day": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    placed = list(read_rows(str(tmp_path / "a.parquet"), purpose="test"))
    assert placed[0].values == {"text": "a", "n": 1, "day": "2020-02-29"}
    assert placed[1].values == {"text": None, "n": 2, "day": None}
    assert placed[1].place == f"{tmp_path / 'a.parquet'}:row 2"


def test_row_places_count_blank_lines_and_csv_rows(tmp_path):
    (tmp_path / "a.jsonl").write_text('\n{"a": 1}\n\n  \n{"a": 2}\n')
    places = [row.place for row in read_rows(str(tmp_path / "a.jsonl"), purpose="test")]
    assert places == [f"{tmp_path}/a.jsonl:2", f"{tmp_path}/a.jsonl:5"]
    (tmp_path / "b.csv").write_text('a\n"x\ny"\nz\n')
    places = [row.place for row in read_rows(str(tmp_path / "b.csv"), purpose="test")]
    assert places == [f"{tmp_path}/b.csv:row 1", f"{tmp_path}/b.csv:row 2"]
    (tmp_path / "c.json").write_text('[\n{"a": 1},\n\n{"a":\n2}]')
    places = [row.place for row in read_rows(str(tmp_path / "c.json"), purpose="test")]
    assert places == [f"{tmp_path}/c.json:2", f"{tmp_path}/c.json:4"]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(cells, cells, max_size=3), min_size=1, max_size=5))
def test_json_lines_and_arrays_round_trip(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    lines = "\n".join(json.dumps(row, ensure_ascii=len(row) % 2 == 0) for row in rows)
    (folder / "a.jsonl").write_text(lines, encoding="utf-8", newline="")
    (folder / "b.json").write_text(json.dumps(rows), encoding="utf-8")
    assert read(folder / "a.jsonl") == rows
    assert read(folder / "b.json") == rows


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
def test_csv_round_trips_with_newlines_and_quotes_in_fields(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("a", "b"), *rows])
    assert read(folder / "a.csv") == [{"a": first, "b": second} for first, second in rows]


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_columns_are_separated_like_their_header(tmp_path, sign):
    """Other signs, quoted separators and line ends inside a field are text."""
    fields = ["a, b; c\td|e", 'two\nlines "quoted"', "\u00e9"]
    for name, mark in (("a.csv", ""), ("b.tsv", "\ufeff")):
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            file.write(mark)
            csv.writer(file, delimiter=sign).writerows([["text", "x y", "z"], fields])
        assert read(tmp_path / name) == [dict(zip(("text", "x y", "z"), fields, strict=True))]
    # The sign between most of the names, not the one inside some.
    (tmp_path / "most.csv").write_text("id;text;label;notes, if any\n1;Hello, you;1;x\n")
    (row,) = read(tmp_path / "most.csv")
    assert (row["text"], row["notes, if any"]) == ("Hello, you", "x")
    (tmp_path / "quoted.csv").write_text('id,"a;b;c"\n1,2\n')
    assert read(tmp_path / "quoted.csv") == [{"id": "1", "a;b;c": "2"}]
    # A name that contains the separator is quoted, and a single column has no separator.
    (tmp_path / "c.csv").write_text('"a;b"\n1\n')
    (tmp_path / "d.csv").write_text("a.b\nx;y\n")
    assert (read(tmp_path / "c.csv"), read(tmp_path / "d.csv")) == (
        [{"a;b": "1"}],
        [{"a.b": "x;y"}],
    )
    named = read_rows(str(tmp_path / "d.csv"), purpose="test", delimiter=".")
    with pytest.raises(InputError, match="row 1 has 1 fields, the header has 2"):
        list(named)
    (tmp_path / "e.jsonl").write_text("{}")
    with pytest.raises(InputError, match="only applies to CSV and TSV"):
        read_rows(str(tmp_path), purpose="test", delimiter=";")


def test_folders_and_globs_are_sorted_and_skip_hidden_and_unknown_files(tmp_path):
    for name in ["b/2.jsonl", "b/1.jsonl", "a.jsonl", ".hidden/x.jsonl", ".x.jsonl", "README.md"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"text": name}) + "\n")
    names = ["a.jsonl", "b/1.jsonl", "b/2.jsonl"]
    assert [row["text"] for row in read(tmp_path)] == names
    assert [row["text"] for row in read(tmp_path / "**" / "*")] == names
    assert [row["text"] for row in read(tmp_path / "*.jsonl")] == ["a.jsonl"]
    assert [row["text"] for row in read(tmp_path / ".x.jsonl")] == [".x.jsonl"]


@pytest.mark.parametrize(
    ("name", "data", "parts"),
    [
        ("a.jsonl", b"", ["a.jsonl", "no rows"]),
        ("a.jsonl", b'{"a": 1}\n{"a": \n', ["a.jsonl:2", "broken JSON", "'{\"a\":'"]),
        ("a.jsonl", b'{"a": 1}\n[1, 2]\n', ["a.jsonl:2", "list, not an object"]),
        ("a.jsonl", b'[{"a": 1}, {"a": 2}]', ["a.jsonl:1", "one JSON array ends in `.json`"]),
        ("a.csv", b"text;a|b\nx, y;1\n", ["a.csv:1", "by ';' or by '|'", "--delimiter"]),
        ("a.csv", b"text;a\nx;y;1\n", ["a.csv:2", "row 1 has 3 fields", "by ';'", "--delimiter"]),
        ("a.csv", b"\xff\xfet\x00\n\x00", ["a.csv", "UTF-16", "iconv -f utf-16"]),
        ("a.jsonl", b"\x00{\x00}\x00\n", ["a.jsonl", "UTF-16", "iconv -f utf-16"]),
        ("a.csv", b"\x1f\x8b\x08", ["a.csv", "gzip, whose name ends in .gz", "Unpack"]),
        ("a.csv", b"PK\x03\x04", ["a.csv", "a ZIP archive", "Unpack"]),
        ("a.csv", b"text,a\rx,1\r", ["a.csv", "only in carriage returns", "tr '\\r' '\\n'"]),
        ("a.xlsx", b"PK\x03\x04", ["a.xlsx", "'.xlsx'", "save a spreadsheet as CSV"]),
        ("a.jsonl", b'{"a": "\\ud800"}\n', ["a.jsonl:1", "surrogate"]),
        ("a.jsonl", b'{"a": 1}\n{"a": "caf\xe9"}\n', ["a.jsonl:2", "UTF-8", "0xe9 at byte 11"]),
        ("a.json", b'[{"a": 1},\n{"a": 2}\n{"a": 3}]', ["a.json:3", "',' or ']'"]),
        ("a.json", b'[{"a": 1}]\n{"a": 2}', ["a.json:2", "after the end"]),
        ("a.csv", b'text\nx\n"open\nnever closed\n', ["a.csv:3", "row 2"]),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", ["a.csv:3", "row 2 has 3 fields, the header has 2"]),
        ("a.csv", b"a,a\n1,2\n", ["a.csv:1", "'a' appears twice"]),
        ("a.txt", b"fine\n\xc3", ["a.txt:2", "UTF-8"]),
        ("a.parquet", b"nothing", ["a.parquet", "Parquet"]),
        ("a.docx", b"x", ["a.docx", "'.docx'", ".jsonl", ".parquet"]),
        ("a.jsonl.gz", b"not zipped", ["a.jsonl.gz", "gzip"]),
    ],
)
def test_broken_files_are_named_with_their_line(tmp_path, name, data, parts):
    (tmp_path / name).write_bytes(data)
    message = error(tmp_path / name)
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(("packing", "n_bytes"), [(".gz", 40), (".zst", -4)])
def test_truncated_files_are_rejected(tmp_path, packing, n_bytes):
    # Incompressible, so that whole lines come before the cut.
    lines = "".join(json.dumps({"text": os.urandom(40).hex()}) + "\n" for _ in range(50))
    path = tmp_path / f"a.jsonl{packing}"
    path.write_bytes(PACKED[packing](lines.encode())[:n_bytes])
    message = error(path)
    assert "truncated or damaged" in message
    assert path.name in message


def test_ignored_files_of_a_folder_are_named(tmp_path):
    for name in ("a.jsonl", "b.jsonl.zst", "c.warc", "sub/d.md", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for pattern in (tmp_path, tmp_path / "**"):
        note = unread_note(str(pattern), key="here")
        assert note.startswith("here: 2 of the files have an unknown format and are not read: ")
        assert f"{tmp_path}/c.warc, {tmp_path}/sub/d.md." in note
    assert unread_note(str(tmp_path / "a.jsonl"), key="here") is None


def test_missing_file_error_lists_existing_files(tmp_path):
    (tmp_path / "train.jsonl").write_text(LINES)
    assert "'train.jsonl'" in error(tmp_path / "trian.jsonl")
    assert "no 'data' in" in error(tmp_path / "data" / "train.jsonl")
    assert "no file matches" in error(tmp_path / "*.csv")
    for pattern in ("**", "sub/*.jsonl"):
        message = error(tmp_path / "nosuch" / pattern)
        assert "no such folder" in message
        assert f"no 'nosuch' in {tmp_path}" in message
    (tmp_path / "empty").mkdir()
    assert "no file of a known format" in error(tmp_path / "empty")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "field"),
    [
        ("background/news_wikinews", 295, "text"),
        ("background/redpajama_sample/**/*.jsonl.gz", 4242, "text"),
        ("detect/decop/arXivTection.csv.gz", 1549, None),
    ],
)
def test_real_files(data_folder, name, rows, field):
    loaded = read(data_folder / name)
    assert len(loaded) == rows
    assert all(isinstance(row[field], str) for row in loaded) if field else True
    assert source_files(str(data_folder / name)) == sorted(source_files(str(data_folder / name)))
