"""Makes one file of the layout of the hub's files: checks columns, takes the rows, writes them."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from inject.errors import InputError
from inject.examples.datasets.gpqa import GpqaOptions
from inject.public_data.catalogue import DataFile
from inject.public_data.conversions import write_rows
from inject.public_data.encrypted_zip import encrypted_zip
from inject.public_data.sources import Sources


def make_file(sources: Sources, target: Path) -> int:
    """Write one file of the layout to `target`; return how many rows it has.

    Raises:
        Unreachable: the hub gives no answer.
        InputError: as `Sources`; columns are missing; there are fewer rows than are asked for.
    """
    file = sources.file
    if file.path.endswith(".zip"):
        return _zip(sources, target)
    rows = chain.from_iterable([sources.rows(source) for source in file.sources])
    count = write_rows(target, _taken(file, rows), name=file.path)
    if count < (file.rows or 1):
        raise InputError(
            f"only {count:,} rows could be made of it", where=_where(file), allowed=file.part()
        )
    return count


def _taken(file: DataFile, rows: Iterator[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    first = next(rows, None)
    if first is None:
        return
    _require_columns(file, list(first))
    kept = (row for row in map(file.convert, chain([first], rows)) if row is not None)
    yield from islice(kept, 0, None if file.rows is None else file.rows * file.every, file.every)


def _zip(sources: Sources, target: Path) -> int:
    """Write files as they are into a zip with the password that their authors publish."""
    paths = {source: sources.whole(source) for source in sources.file.sources}
    contents = {name: path.read_bytes() for name, path in paths.items()}
    rows = 0
    for name, content in contents.items():
        try:
            table = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
            _require_columns(sources.file, next(table, []))
            rows = rows or sum(1 for _ in table)
        except (UnicodeDecodeError, csv.Error):
            # The library's message may quote a protected row.
            raise InputError("cannot be read as CSV", where=str(paths[name])) from None
    target.write_bytes(encrypted_zip(contents, password=GpqaOptions().password))
    return rows


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
