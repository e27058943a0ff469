"""Fetches public datasets into a folder, in the layout that the presets read.

A file of the layout is whole or absent, and its entry in `spikein-data.json` (its origin, its
SHA-256 and that of its source) is written right after it, so that an interrupted call continues
with the next file. A file that has an entry is checked and never fetched again; one that was
changed since is named and kept; one without an entry is the user's own and stays.

Sources come through the cache of the hub library, which serves them without a network from then on,
and are checked against the digest that the hub gives for the pinned commit. Those of a dataset
with terms are kept nowhere in plain text. Of a large source only the beginning is read, over the
network; its rows are then those of the commit, and its digest stays unknown.
"""

import csv
import fnmatch
import gzip
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from inject.digest import file_digest
from inject.errors import InputError, InputErrors, Unreachable
from inject.examples.datasets.gpqa import GpqaOptions
from inject.files import replacing, write_text
from inject.hub.address import HubAddress, fetch_address, require_listed
from inject.hub.dataset_rows import hub_errors
from inject.hub.resolver import describe_repository
from inject.public_data.catalogue import DataFile, DataSet
from inject.public_data.conversions import CONVERSIONS, encoded, encrypted_zip
from inject.reading.row_parsers import PARSERS, format_of

MANIFEST = "spikein-data.json"
_HIDDEN = ".spikein-downloads"
"""Cache of files that are protected, below the data folder, while they are fetched."""
_VERSION = 1
_WHOLE_COMMIT = 40
_BLOCK = 1 << 20
_BATCH = 64
"""Rows of a Parquet file that are turned into Python's values at a time."""


class FileState(NamedTuple):
    """The result for one file of the layout."""

    path: str
    state: str
    """`fetched`, `checked`, or `your own`."""
    rows: int | None
    size: int
    note: str = ""


def fetch(
    sets: Sequence[DataSet],
    folder: Path,
    *,
    on_file: Callable[[FileState], None] = lambda _: None,
) -> list[FileState]:
    """Fetch datasets; existing files are checked.

    Args:
        sets: which; their terms have been agreed to.
        folder: of the layout; made if it is missing.
        on_file: called after each file.

    Raises:
        InputErrors: the files that could not be fetched or were changed since, and why; all others
            were fetched.
        InputError: an unusable folder.
    """
    from filelock import FileLock

    _require_folder(folder)
    states: list[FileState] = []
    problems: list[InputError] = []
    silences: dict[str, Unreachable] = {}
    with FileLock(folder / f".{MANIFEST}.lock"):
        manifest = read_manifest(folder)
        # The remains of a killed call.
        shutil.rmtree(folder / _HIDDEN, ignore_errors=True)
        for data_set in sets:
            try:
                for file in data_set.files:
                    states.append(_state(data_set, file, folder, manifest))
                    on_file(states[-1])
            except Unreachable as error:
                silences[f"{data_set.name} ({data_set.pages})"] = error
            except InputError as error:
                problems.append(error)
    if silences:
        first = next(iter(silences.values()))
        hint = "Give the same command again with a connection; or fetch into a folder on a machine "
        hint += "that has one, and copy the folder: it is complete."
        problems.append(Unreachable(first.problem, where=", ".join(silences), hint=hint))
    if problems:
        done = f"{len(states)} of {sum(len(group.files) for group in sets)} files are in {folder}"
        raise InputErrors(problems, title=f"Not everything could be fetched; {done}:")
    return states


def _state(data_set: DataSet, file: DataFile, folder: Path, manifest: dict[str, Any]) -> FileState:
    """Fetch one file, or report its state."""
    target = folder / file.path
    entry = manifest["files"].get(file.path)
    if target.is_dir():
        raise InputError("is a folder where a file belongs", where=str(target))
    if target.exists():
        size = target.stat().st_size
        if entry is None:
            return FileState(file.path, "your own", None, size, "not fetched here; kept")
        if file_digest(target) != entry["sha256"]:
            raise InputError(
                "was changed since it was fetched",
                where=str(target),
                hint="Delete it to fetch it again, or keep yours elsewhere.",
            )
        other = not entry["commit"].startswith(file.commit)
        note = f"of commit {entry['commit']}; delete it to fetch {file.commit}" if other else ""
        return FileState(file.path, "checked", entry["rows"], size, note)
    file = _resolve_file(file)
    _require_folder(target.parent)
    hidden = folder / _HIDDEN
    try:
        content, rows, sources = _make_file(file, hidden if data_set.terms else None)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    with replacing(target) as temporary:
        temporary.write_bytes(content)
    manifest["files"][file.path] = {
        "bytes": len(content),
        "commit": file.commit,
        "hub": file.hub,
        "licence": data_set.licence,
        "part": file.part(),
        "rows": rows,
        "sha256": hashlib.sha256(content).hexdigest(),
        "sources": sources,
    }
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False)
    write_text(folder / MANIFEST, f"{text}\n")
    return FileState(file.path, "fetched", rows, len(content), file.part())


def _resolve_file(file: DataFile) -> DataFile:
    """Return a file with its whole commit and the paths that its patterns name.

    Raises:
        Unreachable: the hub gives no answer.
        InputError: the main branch has another commit than an abbreviated one.
    """
    if len(file.commit) == _WHOLE_COMMIT and "*" not in "".join(file.sources):
        return file
    revision = file.commit if len(file.commit) == _WHOLE_COMMIT else None
    commit, names = describe_repository("dataset", file.hub, revision)
    if not commit.startswith(file.commit):
        raise InputError(
            f"its main branch is of commit {commit[:12]}, not of {file.commit}",
            where=f"datasets/{file.hub}",
            hint=f"Name its files by their commit: hf://datasets/{file.hub}@COMMIT/…",
        )
    for source in file.sources:
        require_listed(HubAddress(file.hub, commit, source), names)
    sources = [fnmatch.filter(sorted(names), source) for source in file.sources]
    return file.model_copy(update={"commit": commit, "sources": (*chain.from_iterable(sources),)})


def _make_file(file: DataFile, cache: Path | None) -> tuple[bytes, int, list[dict[str, Any]]]:
    """Return the content of a file of the layout, its rows, and the manifest's record of sources.

    Args:
        file: which.
        cache: the folder that keeps the sources; None for the hub library's.

    Raises:
        Unreachable: the hub gives no answer, and the cache lacks a source.
        InputError: no such file, no access, or a checksum mismatch.
    """
    if file.rows is not None:
        content, rows = _table(file, [_first_rows(file, source) for source in file.sources])
        return content, rows, [{"path": source, "sha256": None} for source in file.sources]
    paths = [_fetch_checked(file, source, cache) for source in file.sources]
    if file.path.endswith(".parquet"):
        content, rows = _parquet_bytes(file, paths)
    elif file.path.endswith(".zip"):
        content, rows = _zip_tables(file, [path.read_bytes() for path in paths])
    else:
        # `.json` of the hub has lines or one array; the parser reads both.
        parsed = [PARSERS[format_of(path) or ""](path, "download") for path in paths]
        content, rows = _table(file, [(row.values for row in part) for part in parsed])
    sources = [
        {"path": source, "sha256": file_digest(path), "checked_against_hub": path.is_symlink()}
        for source, path in zip(file.sources, paths, strict=True)
    ]
    return content, rows, sources


def _table(file: DataFile, parts: list[Iterator[dict[str, Any]]]) -> tuple[bytes, int]:
    """Return rows of the hub as a file of the layout, and how many there are."""
    rows = chain.from_iterable(parts)
    first = next(rows, {})
    _require_columns(file, list(first))
    converted = filter(None, map(CONVERSIONS[file.convert], chain([first], rows)))
    taken = list(islice(converted, 0, file.rows and file.rows * file.every, file.every))
    if len(taken) < (file.rows or 1):
        raise InputError(
            f"only {len(taken):,} rows could be made of it", where=_label(file), allowed=file.part()
        )
    return encoded(taken, file.path), len(taken)


def _parquet_bytes(file: DataFile, paths: Sequence[Path]) -> tuple[bytes, int]:
    """Return the rows of Parquet files as one file, unchanged, and their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in paths:
        _require_columns(file, pq.read_schema(path).names)
    table, target = pa.concat_tables(map(pq.read_table, paths)), io.BytesIO()
    pq.write_table(table, target)
    return target.getvalue(), len(table)


def _fetch_checked(file: DataFile, source: str, cache: Path | None) -> Path:
    """Return the local path of a file of the hub, fetched and checked."""
    path, _ = fetch_address(HubAddress(file.hub, file.commit, source), cache=cache)
    content, blob = path.read_bytes(), path.resolve()
    digest = hashlib.sha256(content).hexdigest()
    git_digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    # The cache names a content by the hub's digest: SHA-256 of a large file, else git's own.
    if path.is_symlink() and blob.name not in (digest, git_digest):
        path.unlink()
        blob.unlink()
        raise InputError(
            f"checksum mismatch for {source}: the file differs from the hub's (digest "
            f"{digest[:12]}…, not {blob.name[:12]}…)",
            where=f"datasets/{file.hub}",
            hint="Nothing was kept of it. Give the same command again; a proxy may alter files.",
        )
    return path


def _first_rows(file: DataFile, source: str) -> Iterator[dict[str, Any]]:
    """Yield rows from the beginning of a file, reading no more of it than they take."""
    from huggingface_hub import HfFileSystem

    _, names = describe_repository("dataset", file.hub, file.commit)
    require_listed(HubAddress(file.hub, file.commit, source), names)
    place = f"datasets/{file.hub}@{file.commit}/{source}"
    with (
        hub_errors(_label(file), hint="Run the same command again; nothing of it was kept."),
        HfFileSystem().open(place, "rb", block_size=_BLOCK) as remote,
    ):
        if source.endswith(".parquet"):
            import pyarrow.parquet as pq

            parquet = pq.ParquetFile(remote)
            # Asked for all groups at once, the reader fetches the whole file.
            for group in range(parquet.num_row_groups):
                for batch in parquet.iter_batches(batch_size=_BATCH, row_groups=[group]):
                    yield from batch.to_pylist()
            return
        lines = gzip.GzipFile(fileobj=remote) if source.endswith(".gz") else remote
        yield from map(json.loads, lines)


def _zip_tables(file: DataFile, contents: list[bytes]) -> tuple[bytes, int]:
    """Return files as they are in a zip with the password that their authors publish."""
    try:
        texts = [content.decode("utf-8-sig") for content in contents]
        tables = [list(csv.reader(io.StringIO(text, newline=""))) for text in texts]
    except (UnicodeDecodeError, csv.Error):
        # The library's message may quote a protected row.
        raise InputError("cannot be read as CSV", where=_label(file)) from None
    for table in tables:
        _require_columns(file, table[0] if table else [])
    files = dict(zip(file.sources, contents, strict=True))
    return encrypted_zip(files, password=GpqaOptions().password), len(tables[0]) - 1


def _require_columns(file: DataFile, columns: Sequence[str]) -> None:
    missing = [name for name in file.columns if name not in columns]
    if missing:
        raise InputError(
            f"has no column {', '.join(map(repr, missing))}",
            where=_label(file),
            allowed=", ".join(file.columns),
            hint=f"It has {', '.join(columns) or 'none'}. What spikein knows of this dataset is "
            "out of date; please report it.",
        )


def _label(file: DataFile) -> str:
    return f"datasets/{file.hub}: {', '.join(file.sources)}"


def _require_folder(folder: Path) -> None:
    """Make a folder if it is missing.

    Raises:
        InputError: something else is there, or none can be made there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, FileNotFoundError) as error:
        raise InputError(
            f"no folder can be made there ({error.strerror})",
            where=str(folder),
            hint="Give another folder with --to.",
        ) from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the record of a folder's fetched files: `files`, by their paths.

    Raises:
        InputError: a damaged manifest.
    """
    path = folder / MANIFEST
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        entries = value["files"].values()
        complete = all({"commit", "sha256", "rows"} <= entry.keys() for entry in entries)
        if complete and value["version"] == _VERSION:
            return dict(value)
    except FileNotFoundError:
        return {"version": _VERSION, "files": {}}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    raise InputError(
        "is not the list of files that `spikein data fetch` writes",
        where=str(path),
        hint="Delete it, and the files that it names, to fetch them again; or give another folder.",
    )
