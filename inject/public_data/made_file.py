"""Makes one file of the layout of the hub's files: checks columns, takes the rows, writes them."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from inject.errors import InputError, first_line
from inject.examples.datasets.gpqa import GpqaOptions
from inject.public_data.catalogue import DataFile
from inject.public_data.conversions import write_rows
from inject.public_data.encrypted_zip import encrypted_zip
from inject.public_data.sources import Facts, Sources


class MadeFile(NamedTuple):
    """What a file was made of."""

    rows: int
    sources: list[Facts]


def make_file(file: DataFile, sources: Sources, target: Path) -> MadeFile:
    """Write one file of the layout to `target`.

    Raises:
        Unreachable: the hub gives no answer.
        InputError: as `Sources`; columns are missing; there are fewer rows than are asked for.
    """
    if file.path.endswith(".zip"):
        return _zip(file, sources, target)
    parts = [sources.rows(file, source) for source in file.sources]
    rows = (row for part in parts for row in part.rows)
    count = write_rows(target, _taken(file, rows), name=file.path)
    if count < (file.rows or 1):
        raise InputError(
            f"only {count:,} rows could be made of it", where=_where(file), allowed=file.part()
        )
    return MadeFile(count, [part.facts for part in parts])


def _taken(file: DataFile, rows: Iterator[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    first = next(rows, None)
    if first is None:
        return
    _require_columns(file, list(first))
    converted = (_converted(file, number, row) for number, row in enumerate(_with(first, rows), 1))
    kept = (row for row in converted if row is not None)
    yield from islice(kept, 0, None if file.rows is None else file.rows * file.every, file.every)


def _converted(file: DataFile, number: int, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        return file.convert(row)
    except (KeyError, TypeError) as error:
        raise InputError(
            f"row {number:,} cannot be converted ({first_line(error)})", where=_where(file)
        ) from error


def _with(first: dict[str, Any], rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rows


def _zip(file: DataFile, sources: Sources, target: Path) -> MadeFile:
    """Write files as they are into a zip with the password that their authors publish."""
    parts = {source: sources.whole(file, source) for source in file.sources}
    contents = {name: part.path.read_bytes() for name, part in parts.items()}
    rows = 0
    for name, content in contents.items():
        try:
            table = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
            _require_columns(file, next(table, []))
            rows = rows or sum(1 for _ in table)
        except (UnicodeDecodeError, csv.Error):
            # The library's message may quote a protected row.
            raise InputError("cannot be read as CSV", where=str(parts[name].path)) from None
    target.write_bytes(encrypted_zip(contents, password=GpqaOptions().password))
    return MadeFile(rows, [part.facts for part in parts.values()])


def _require_columns(file: DataFile, columns: Sequence[str]) -> None:
    missing = [name for name in file.columns if name not in columns]
    if missing:
        raise InputError(
            f"has no column {', '.join(map(repr, missing))}",
            where=_where(file),
            allowed=", ".join(file.columns),
            hint=f"It has {', '.join(columns) or 'none'}. What spikein knows of this data set is "
            "out of date; please report it.",
        )


def _where(file: DataFile) -> str:
    return f"datasets/{file.hub}: {', '.join(file.sources)}"
