"""One file of named parts: an uncompressed zip whose every byte is checked before it is used.

`bundle.json` comes first: the format, a header, and for each part its size and SHA-256. `content`
is the digest of the parts' names and digests, so it names what is inside, whenever it was packed;
`seal` is the digest of `bundle.json` without itself. Nothing is ever unpacked to disk. A file is
written whole or not at all.

Cost: reading and hashing, about 1 GB/s.
"""

import hashlib
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from inject.bounded_files import open_regular
from inject.digest import digest
from inject.errors import InputError
from inject.files import replacing

HEADER = "bundle.json"
FORMAT = "spikein ground truth"
VERSION = 3
PARQUET = ".parquet"

_LARGEST_HEADER = 256 * 1024 * 1024
_MOST_ROWS = 10_000_000
_MOST_VALUES = 2_000_000_000
"""Of all columns of a table; repeated ones take next to no bytes in a file, and all in memory."""
_SHOWN = 3
_PART = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*\.parquet")
_TIME = (1980, 1, 1, 0, 0, 0)
_HINT = "Get the bundle again from where it was published, or pack the run again: spikein bundle."


class Part(NamedTuple):
    """One part of a bundle."""

    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A bundle whose parts have been checked."""

    path: Path
    header: Mapping[str, Any]
    parts: Mapping[str, bytes]
    content: str
    """The digest that names what is inside."""

    def table(self, name: str, *, repeated: tuple[str, ...] = ()) -> pa.Table:
        """Return a part as a table.

        Args:
            name: of the part.
            repeated: columns of few different texts, which are kept once each.

        Raises:
            InputError: there is no such part, it is no table, or one that no memory holds.
        """
        where = f"{self.path}: {name}"
        if name not in self.parts:
            raise InputError("the bundle names a part that it does not hold", where=where)
        try:
            file = pq.ParquetFile(
                pa.BufferReader(self.parts[name]), read_dictionary=list(repeated) or None
            )
            _check_size(file.metadata, where)
            return file.read()
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"cannot be read: {error}", where=where, hint=_HINT) from None


def write_archive(path: Path, header: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> str:
    """Write a bundle; return the digest of its content.

    Args:
        path: the file; one that is there is replaced when the new one is whole.
        header: plain JSON values.
        tables: the parts, by names such as `statistics/0001.parquet`.
    """
    parts = {name: _parquet(table) for name, table in tables.items()}
    known = {
        name: Part(hashlib.sha256(part).hexdigest(), len(part)) for name, part in parts.items()
    }
    values: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "content": _content(known),
        "parts": {name: part._asdict() for name, part in known.items()},
        **header,
    }
    values["seal"] = digest(values)
    text = json.dumps(values, indent=1, ensure_ascii=False)
    with (
        replacing(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as file,
    ):
        file.writestr(zipfile.ZipInfo(HEADER, _TIME), text)
        for name, part in parts.items():
            file.writestr(zipfile.ZipInfo(name, _TIME), part)
    return str(values["content"])


def read_archive(path: Path) -> Archive:
    """Read a bundle and check every byte of it.

    Raises:
        InputError: it is no bundle, is of another version, has a wrong checksum, lacks a part, or
            holds one that it does not name or whose path leaves the bundle; says which.
    """
    with open_regular(path, what="bundle") as file:
        data = file.read()
    where = str(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries, len(data), where)
            content = {one.filename: archive.read(one) for one in entries}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError(
            f"is no bundle, or a damaged one ({error})", where=where, hint=_HINT
        ) from (None)
    header = _header(content.pop(HEADER, None), where)
    try:
        known = {name: Part(**part) for name, part in header["parts"].items()}
        named = str(header["content"])
    except (KeyError, TypeError, AttributeError):
        raise _wrong(f"{HEADER} does not list the parts", where) from None
    for name in known:
        _check_name(name, where)
    if missing := sorted(known.keys() - content.keys()):
        raise _wrong(f"lacks {len(missing)} of its {len(known)} parts: {', '.join(missing)}", where)
    if unknown := sorted(content.keys() - known.keys()):
        raise _wrong(f"holds what {HEADER} does not list: {', '.join(unknown)}", where)
    for name, part in known.items():
        if hashlib.sha256(content[name]).hexdigest() != part.sha256:
            raise _wrong(f"the checksum of {name} is wrong: its bytes were changed", where)
    if named != _content(known):
        raise _wrong("the checksum of the whole is wrong", where)
    return Archive(path=path, header=header, parts=content, content=named)


def is_archive(path: Path) -> bool:
    """Return whether a path is a file that begins as a bundle does; it may still be damaged."""
    if not path.is_file():
        return False
    with open_regular(path, what="bundle") as file:
        return file.read(4) == b"PK\x03\x04"


def _header(text: bytes | None, where: str) -> dict[str, Any]:
    if text is None:
        raise InputError(f"is no bundle: it holds no {HEADER}", where=where)
    try:
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError("it is no object")
    except (ValueError, RecursionError) as error:
        raise _wrong(f"{HEADER} cannot be read: {error}", where) from None
    if values.get("format") != FORMAT:
        raise InputError(
            f"is no bundle: its {HEADER} has the format {values.get('format')!r}",
            where=where,
            allowed=repr(FORMAT),
        )
    if values.get("version") != VERSION:
        made = (values.get("provenance") or {}).get("version", "an unknown version")
        raise InputError(
            f"is a bundle of version {values.get('version')!r}, made by spikein {made}; this "
            f"spikein reads version {VERSION}",
            where=where,
            hint="Use the spikein that made it, or pack the run again: spikein bundle.",
        )
    seal = values.pop("seal", None)
    try:
        found = digest(values)
    except TypeError as error:
        raise _wrong(f"{HEADER} holds what no bundle does: {error}", where) from None
    if seal != found:
        raise _wrong(f"the checksum of {HEADER} is wrong: it was changed", where)
    return values


def _check_entries(entries: list[zipfile.ZipInfo], size: int, where: str) -> None:
    names = Counter(one.filename for one in entries)
    if twice := [name for name, count in names.items() if count > 1]:
        raise _wrong(f"holds a part twice: {', '.join(sorted(twice)[:_SHOWN])}", where)
    for one in entries:
        if one.filename != HEADER:
            _check_name(one.filename, where)
        if one.compress_type != zipfile.ZIP_STORED or one.file_size != one.compress_size:
            raise _wrong(f"{one.filename} is compressed, as no part of a bundle is", where)
        if one.filename == HEADER and one.file_size > _LARGEST_HEADER:
            raise _wrong(f"{HEADER} is larger than any of a bundle", where)
    if sum(one.file_size for one in entries) > size:
        raise _wrong("has parts that lie over each other", where)


def _check_size(table: pq.FileMetaData, where: str) -> None:
    values = sum(
        table.row_group(group).column(column).num_values
        for group in range(table.num_row_groups)
        for column in range(table.num_columns)
    )
    if table.num_rows > _MOST_ROWS or values > _MOST_VALUES:
        raise InputError(
            f"has {table.num_rows:,} rows with {values:,} values",
            where=where,
            allowed=f"at most {_MOST_ROWS:,} rows and {_MOST_VALUES:,} values",
            hint="Bundle fewer arms at a time: spikein bundle --arm.",
        )


def _check_name(name: str, where: str) -> None:
    if not _PART.fullmatch(name):
        raise _wrong(f"the path of a part leaves the bundle, or is none: {name!r}", where)


def _content(parts: Mapping[str, Part]) -> str:
    return digest({name: part.sha256 for name, part in parts.items()})


def _wrong(problem: str, where: str) -> InputError:
    return InputError(problem, where=where, hint=_HINT)


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
