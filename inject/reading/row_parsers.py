"""The parsers of `inject.reading.rows`: JSON lines, JSON, CSV, TSV, Parquet and plain text.

Text is strict UTF-8; a byte order mark at the start of a file is removed, one inside is kept. Lines
only end at `\\n`, so a line number here is the one an editor shows. Columns of CSV are separated
by commas and those of TSV by tabs, or by the separator of the names in their first line.
"""

import csv
import datetime
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from inject.bounded_files import check_regular, check_row, check_unpacked, check_whole, read_lines
from inject.errors import InputError, first_line

_MARK = b"\xef\xbb\xbf"
_NO_TEXT = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b": "gzip, whose name ends in .gz",
    b"\x28\xb5\x2f\xfd": "Zstandard, whose name ends in .zst",
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1": "Parquet, whose name ends in .parquet",
}
"""The first bytes of other kinds of files."""
_SIGNS = ",;\t|"
"""Possible separators of columns."""
_SEPARATOR_HINT = (
    "Put names and fields that contain the separator, a quote or a line end in quotes; "
    "`--delimiter` of `spikein detect` sets another separator."
)
_CLIP = 60
_ARRAY = "A file that is one JSON array ends in `.json`; in `.jsonl` each line is an object."
_FIELD_LIMIT = (1 << 31) - 1


class PlacedRow(NamedTuple):
    """One row and its place: `file:line`, or `file:row N` (N from 1) in CSV and Parquet."""

    place: str
    values: dict[str, Any]


Parser = Callable[..., Iterator[PlacedRow]]
"""Called with the file and the purpose of its rows."""


def format_of(path: Path) -> str | None:
    """Return the extension that names the format (`.jsonl.gz` …), or None if unknown."""
    name = path.name.lower()
    return max((suffix for suffix in PARSERS if name.endswith(suffix)), key=len, default=None)


def _lines(path: Path, purpose: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text with its line end)."""
    for number, line in enumerate(read_lines(path, purpose), start=1):
        if number == 1:
            check_text(line, str(path), purpose)
            line = line.removeprefix(_MARK)
        yield number, _decode(line, f"{path}:{number}", purpose)


def check_text(beginning: bytes, place: str, purpose: str) -> None:
    """Refuse content that is not UTF-8 text, by its first bytes.

    Raises:
        InputError: naming its kind, and how it is converted.
    """
    kind = next((_NO_TEXT[mark] for mark in _NO_TEXT if beginning.startswith(mark)), None)
    # Two bytes a letter, without a mark.
    if kind is None and b"\x00" in beginning:
        kind = "UTF-16"
    if kind is not None:
        raise InputError(
            f"{purpose}: its content is {kind}",
            where=place,
            allowed="UTF-8",
            hint="Convert the file, for instance with `iconv -f utf-16 -t utf-8`."
            if kind == "UTF-16"
            else "Unpack the file, or give it the name of its kind.",
        )


def _join_lines(lines: Iterator[tuple[int, str]], path: Path, purpose: str) -> str:
    # Millions of short lines in a list would take many times their letters.
    whole = io.StringIO(newline="")
    length = 0
    for _, text in lines:
        length += whole.write(text)
        check_whole(length, path, purpose)
    return whole.getvalue()


def _decode(line: bytes, place: str, purpose: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{purpose}: invalid UTF-8 (byte 0x{line[error.start]:02x} at byte {error.start + 1} "
            "of this line)",
            where=place,
            hint="Convert the file, for instance with `iconv -f cp1252 -t utf-8`.",
        ) from error


def _clip(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _CLIP else text[:_CLIP] + "…")


def _row(place: str, values: object, source: str, purpose: str) -> PlacedRow:
    if not isinstance(values, dict):
        raise InputError(
            f"{purpose}: the row is {type(values).__name__}, not an object: {_clip(source)}",
            where=place,
            allowed='rows such as {"text": "..."}',
            hint=_ARRAY if isinstance(values, list) else None,
        )
    # JSON can spell half a surrogate pair, which no UTF-8 file could represent later.
    if "\\u" in source and "\\ud" in source.lower():
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{purpose}: half a surrogate pair, not valid text: {_clip(source)}", where=place
            ) from error
    return PlacedRow(place, values)


def _broken_json(place: str, source: str, reason: str, purpose: str) -> InputError:
    return InputError(
        f"{purpose}: broken JSON ({reason}): {_clip(source)}",
        where=place,
        hint=_ARRAY if source.lstrip().startswith("[") else None,
    )


def json_lines(path: Path, purpose: str) -> Iterator[PlacedRow]:
    """Yield the objects of a file of JSON Lines, regardless of its name."""
    for number, line in _lines(path, purpose):
        if line.strip():
            yield _json_row(f"{path}:{number}", line, purpose)


def _json_row(place: str, line: str, purpose: str) -> PlacedRow:
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise _broken_json(place, line, f"{error.msg} at column {error.colno}", purpose) from error
    except (ValueError, RecursionError) as error:
        raise _broken_json(place, line, str(error), purpose) from error
    return _row(place, values, line, purpose)


def _json(path: Path, purpose: str) -> Iterator[PlacedRow]:
    """Yield the elements of one array, or, if the file does not begin with `[`, its lines."""
    lines = _lines(path, purpose)
    for number, line in lines:
        if not line.strip():
            continue
        if line.lstrip().startswith("["):
            yield from _array(path, line + _join_lines(lines, path, purpose), number, purpose)
            return
        yield _json_row(f"{path}:{number}", line, purpose)


def _array(path: Path, text: str, first_line: int, purpose: str) -> Iterator[PlacedRow]:
    """Decode the elements one by one, so that an error knows its line and memory stays low."""
    decoder = json.JSONDecoder()
    place, line = text.index("[") + 1, first_line
    counted, elements = 0, 0

    def skip_blanks() -> str:
        nonlocal place, line, counted
        while text[place : place + 1] in (" ", "\t", "\r", "\n"):
            place += 1
        line += text.count("\n", counted, place)
        counted = place
        return text[place : place + 1]

    def fail(reason: str) -> InputError:
        return _broken_json(f"{path}:{line}", text[place : place + 2 * _CLIP], reason, purpose)

    sign = skip_blanks()
    while sign != "]" or elements:
        try:
            values, stop = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            line += text.count("\n", counted, error.pos)
            place = text.rfind("\n", 0, error.pos) + 1
            raise fail(f"{error.msg} at column {error.colno}") from error
        except (ValueError, RecursionError) as error:
            raise fail(str(error)) from error
        yield _row(f"{path}:{line}", values, text[place:stop], purpose)
        elements += 1
        place = stop
        sign = skip_blanks()
        if sign == "]":
            break
        if sign != ",":
            raise fail("',' or ']' expected after an element")
        place += 1
        sign = skip_blanks()
    place += 1
    if skip_blanks():
        raise fail("text after the end of the array")


def _csv(
    path: Path, purpose: str, *, usual: str = ",", delimiter: str | None = None
) -> Iterator[PlacedRow]:
    csv.field_size_limit(_FIELD_LIMIT)
    # strict: an unclosed quote would otherwise swallow the rest of the file in silence.
    start, n_bytes = 1, 0
    numbered_lines = _lines(path, purpose)
    first = next(((number, line) for number, line in numbered_lines if line.strip()), None)
    if first is None:
        return
    if "\r" in first[1].rstrip("\r\n") and '"' not in first[1]:
        raise InputError(
            f"{purpose}: its lines end only in carriage returns",
            where=str(path),
            allowed="lines that end in line feeds",
            hint="Save it so, for instance with `tr '\\r' '\\n'`.",
        )
    sign = delimiter or _separator(first[1], usual, f"{path}:{first[0]}", purpose)

    def lines() -> Iterator[str]:
        nonlocal n_bytes
        for _, line in chain([first], numbered_lines):
            # A quoted field may run over lines without end.
            n_bytes += len(line)
            check_row(n_bytes, f"{path}:{start}", purpose)
            yield line

    reader = csv.reader(lines(), delimiter=sign, strict=True)
    header: list[str] | None = None
    number, before = 0, first[0] - 1
    while True:
        start, n_bytes = before + reader.line_num + 1, 0
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{purpose}: row {number + 1} cannot be read ({error})",
                where=f"{path}:{start}",
                hint='A quote inside a quoted field is written twice: "".',
            ) from error
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            header = cells
            if twice := [name for name in header if header.count(name) > 1]:
                raise InputError(
                    f"{purpose}: column {_clip(twice[0])} appears twice",
                    where=f"{path}:{start}",
                    allowed="a first line that names each column once",
                )
            continue
        number += 1
        if len(cells) != len(header):
            raise InputError(
                f"{purpose}: row {number} has {len(cells)} fields, the header has {len(header)} "
                f"({_clip(sign.join(header))}), separated by {sign!r}",
                where=f"{path}:{start}",
                hint=_SEPARATOR_HINT,
            )
        yield PlacedRow(f"{path}:row {number}", dict(zip(header, cells, strict=True)))


def _separator(header: str, usual: str, place: str, purpose: str) -> str:
    """Return the sign that occurs most often between the names of a header; `usual` if tied."""
    # A quoted name may run on to further lines.
    names = re.sub(r'"[^"]*("|$)', "", header)
    counts = {sign: names.count(sign) for sign in dict.fromkeys((usual, *_SIGNS))}
    most = max(counts.values())
    likely = [sign for sign, count in counts.items() if count == most]
    if usual in likely:
        return usual
    if len(likely) > 1:
        raise InputError(
            f"{purpose}: the columns are separated by {' or by '.join(map(repr, likely))}: "
            f"{_clip(header)}",
            where=place,
            allowed="one of commas, semicolons, tabs and | between the names of the columns",
            hint=_SEPARATOR_HINT,
        )
    return likely[0]


def _text(path: Path, purpose: str) -> Iterator[PlacedRow]:
    """Yield the whole file as one row {"text": …}, its line ends as they are."""
    text = _join_lines(_lines(path, purpose), path, purpose)
    if text:
        yield PlacedRow(f"{path}:1", {"text": text})


def _parquet(path: Path, purpose: str) -> Iterator[PlacedRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    check_regular(path, purpose=purpose)
    try:
        with pq.ParquetFile(path) as file:
            _check_sizes(file.metadata, path, purpose)
            for batch in file.iter_batches(batch_size=1024):
                for values in batch.to_pylist():
                    number += 1
                    plain = {name: _plain_value(value) for name, value in values.items()}
                    yield PlacedRow(f"{path}:row {number}", plain)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"{purpose}: the Parquet file cannot be read after row {number} ({first_line(error)})",
            where=str(path),
        ) from error


def _check_sizes(metadata: Any, path: Path, purpose: str) -> None:
    """Refuse row groups that unpack to more than their size explains, before they are read."""
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        columns = [group.column(column) for column in range(group.num_columns)]
        check_unpacked(
            sum(column.total_uncompressed_size for column in columns),
            sum(column.total_compressed_size for column in columns),
            path,
            purpose,
        )


def _plain_value(value: Any) -> Any:
    """Turn dates and times into ISO text, as the other formats have them."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value


_TEXT_PARSERS: dict[str, Parser] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": _json,
    ".csv": _csv,
    ".tsv": partial(_csv, usual="\t"),
    ".txt": _text,
}
PARSERS: dict[str, Parser] = {
    **_TEXT_PARSERS,
    **{
        f"{extension}{packing}": parser
        for extension, parser in _TEXT_PARSERS.items()
        for packing in (".gz", ".zst")
    },
    ".parquet": _parquet,
}
"""By extension; each yields the rows of one file."""
DELIMITED = tuple(name for name in PARSERS if name.startswith((".csv", ".tsv")))
KNOWN_FORMATS = " ".join(PARSERS)
