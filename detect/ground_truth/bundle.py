"""A ground truth as a folder for others, and back (`docs/ground-truth-bundle.md`).

It holds the tables of the run's artifacts as the store does, and `bundle.json`: what the ground
truth is made of, the SHA-256 of each file, and `content`, the digest that names it all, whenever it
was packed. Which files leave, and which of their columns show a text, each kind of need says
(`Need.leaves`): these columns are null in the rows of protected datasets. Every byte is checked
before it is used. Cost: reading and hashing, about 1 GB/s.
"""

import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from detect.evidence.needs import every_kind
from detect.ground_truth.ground_truth import Description, GroundTruth, read_ground_truth
from detect.scores.table import SCORES_FILE
from inject.bounded_files import open_regular
from inject.digest import digest, file_digest
from inject.errors import InputError
from inject.examples.example import (
    EXAMPLES_FILE,
    Example,
    read_examples,
    read_held_out,
    write_examples,
    write_held_out,
)
from inject.files import write_text
from inject.formats.folder import exporting, file_facts
from inject.stream.exposures import EXPOSURES_FILE
from inject.tables import named_errors

HEADER = "bundle.json"
FORMAT = "spikein ground truth"
VERSION = 4

_FILE = re.compile(r"(?!\.)[^/\\]+/(?!\.)[^/\\]+/(?!\.)[^/\\]+")
_MOST_ROWS = 10_000_000
_MOST_VALUES = 2_000_000_000
"""Of all columns of a table; repeated ones take next to no bytes in a file, and all in memory."""
_HINT = "Get the bundle again from where it was published, or pack the run again: spikein bundle."


class BundleFacts(NamedTuple):
    """What a bundle says of itself."""

    content: str
    """The digest that names what is inside."""
    models: int
    rows: int
    withheld: int
    """Rows whose texts are not inside."""
    size: int
    """Bytes."""


def write_bundle(out: Path, described: Description, root: Path) -> BundleFacts:
    """Write a bundle, whole or not at all.

    Args:
        out: the folder.
        described: what the ground truth is made of.
        root: the folder of its artifacts.

    Raises:
        InputError: the folder is there and is not empty, or cannot be written.
    """
    scored = {one.examples for one in described.models}
    pools = {name: (read_examples(root / name), read_held_out(root / name)) for name in scored}
    protected = {
        row.example_id for pool in pools.values() for part in pool for row in part if row.protected
    }
    with exporting(out) as folder:
        for name in sorted(described.artifacts):
            (folder / name).mkdir(parents=True)
            for path in sorted((root / name).iterdir()):
                if path.name in _leaves():
                    _pack(path, folder / name / path.name, protected)
            if (root / name / EXAMPLES_FILE).is_file():
                # Pools that are not scored say whom a shadow model saw, and nothing else.
                _pack_pool(root / name, folder / name, whole=name not in scored)
        content = _write_header(folder, described)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    ids = {row.example_id for rows, _ in pools.values() for row in rows}
    return BundleFacts(
        content=content,
        models=len(described.models),
        rows=len(ids),
        withheld=len(ids & protected),
        size=size,
    )


def read_bundle(path: Path) -> GroundTruth:
    """Read what `write_bundle` wrote; every byte is checked first.

    Raises:
        InputError: it is no bundle, is of another version, or lacks a file or has a changed one;
            says which.
    """
    values = _header(path)
    for name, sha256 in values["files"].items():
        if not _FILE.fullmatch(name):
            raise _wrong(f"the path of a file leaves the bundle: {name!r}", path)
        if not (path / name).exists():
            raise _wrong(f"lacks the file {name}", path)
        if file_digest(path / name) != sha256:
            raise _wrong(f"the checksum of {name} is wrong: its bytes were changed", path)
        if name.endswith(".parquet"):
            _check_size(path / name)
    described = Description.model_validate(
        {name: values[name] for name in Description.model_fields}
    )
    there = {name.rpartition("/")[0] for name in values["files"]}
    if lacking := sorted(described.artifacts - there):
        raise _wrong(f"{HEADER} lists no file of {', '.join(lacking)}", path)
    return read_ground_truth(described, path, withheld=True, content=values["content"])


def is_bundle(path: Path) -> bool:
    """Return whether a path is a bundle, of an earlier version, too; it may still be damaged."""
    return (path / HEADER).is_file() or path.is_file()


def _header(path: Path) -> dict[str, Any]:
    if path.is_file():
        raise InputError(
            "is a file; a bundle is a folder since version 4, and was a file before",
            where=str(path),
            hint="Use the spikein that made it, or pack the run again: spikein bundle.",
        )
    with open_regular(path / HEADER, what="bundle") as file:
        text = file.read()
    try:
        values = dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise _wrong(f"{HEADER} cannot be read: {error}", path) from None
    if values.get("format") != FORMAT:
        raise _wrong(f"is no bundle: its {HEADER} has the format {values.get('format')!r}", path)
    if values.get("version") != VERSION:
        raise InputError(
            f"is a bundle of version {values.get('version')!r}; this spikein reads {VERSION}",
            where=str(path),
            hint="Use the spikein that made it, or pack the run again: spikein bundle.",
        )
    named = {name: value for name, value in values.items() if name not in ("content", "created")}
    if digest(named) != values.get("content"):
        raise _wrong(f"the checksum of {HEADER} is wrong: it was changed", path)
    return values


def _wrong(problem: str, path: Path) -> InputError:
    return InputError(problem, where=str(path), hint=_HINT)


def _check_size(path: Path) -> None:
    with named_errors(path, hint=_HINT):
        table = pq.read_metadata(path)
    groups = [table.row_group(number) for number in range(table.num_row_groups)]
    values = sum(
        group.column(column).num_values for group in groups for column in range(table.num_columns)
    )
    if table.num_rows > _MOST_ROWS or values > _MOST_VALUES:
        raise InputError(
            f"has {table.num_rows:,} rows with {values:,} values",
            where=str(path),
            allowed=f"at most {_MOST_ROWS:,} rows and {_MOST_VALUES:,} values",
            hint="Bundle fewer arms at a time: spikein bundle --arm.",
        )


def _write_header(folder: Path, described: Description) -> str:
    """Write `bundle.json`, without inputs of which no file leaves; return the digest of it all."""
    facts = file_facts(folder)
    there = {name.rpartition("/")[0] for name in facts}
    values = described.model_dump(mode="json")
    for model in values["models"]:
        model["inputs"] = {name: of for name, of in model["inputs"].items() if of in there}
    files = {name: file["sha256"] for name, file in facts.items()}
    values = {"format": FORMAT, "version": VERSION, **values, "files": files}
    content = digest(values)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    values |= {"content": content, "created": created}
    write_text(folder / HEADER, json.dumps(values, indent=1, ensure_ascii=False))
    return content


@cache
def _leaves() -> Mapping[str, Sequence[str]]:
    """Return the files that leave, each with the columns that show a text."""
    files: dict[str, Sequence[str]] = {SCORES_FILE: (), EXPOSURES_FILE: ()}
    for kind in every_kind():
        files |= kind.leaves
    return files


def _pack(path: Path, out: Path, protected: Collection[str]) -> None:
    """Write one file without what shows a protected text, and without what was recorded beside."""
    columns = _leaves()[path.name]
    if path.suffix == ".parquet":
        pq.write_table(_redacted(pq.read_table(path), columns, protected), out, compression="zstd")
    elif path.suffix == ".arrow":
        with pa.memory_map(str(path)) as source:
            table = _redacted(pa.ipc.open_file(source).read_all(), columns, protected)
            with pa.OSFile(str(out), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    elif columns:
        values = json.loads(path.read_text(encoding="utf-8"))
        for entry in values.values():
            entry |= {name: [None] * len(entry[name]) for name in columns}
        write_text(out, json.dumps(values))
    else:
        shutil.copyfile(path, out)


def _redacted(table: pa.Table, columns: Sequence[str], protected: Collection[str]) -> pa.Table:
    if columns:
        hidden = pc.is_in(table["example_id"], pa.array(sorted(protected), pa.string()))
    for name in columns:
        at = table.column_names.index(name)
        shown = pc.if_else(hidden, pa.scalar(None, table[name].type), table[name])
        table = table.set_column(at, name, shown)
    return table.replace_schema_metadata(None)


def _pack_pool(folder: Path, out: Path, *, whole: bool) -> None:
    """Write the rows of a pool, with blanks in place of protected texts, or of all."""

    def shown(row: Example) -> Example:
        if not (whole or row.protected):
            return row
        return replace(row, text=" " * len(row.text), fields={}, spans={}, paraphrases=())

    write_examples(out, map(shown, read_examples(folder)))
    write_held_out(out, [] if whole else list(map(shown, read_held_out(folder))))
