"""Rows of local files: one file, a folder of files, or a glob, in any of a few formats.

Files are streamed line by line (a `.json` array: its text is in memory, its elements are not), each
row comes with its place for error messages, and whatever cannot be read is an `InputError`
naming file and line. Nothing is guessed or repaired: broken rows, invalid UTF-8 and empty
files stop the reading; so do pipes, devices and decompression bombs (`inject.bounded_files`). Cost:
that of the parser (jsonl about 100 MB/s per core).
"""

import glob
import os
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from inject.bounded_files import check_regular
from inject.errors import InputError, did_you_mean, first_names
from inject.reading.change_guard import content_digest
from inject.reading.row_parsers import DELIMITED, KNOWN_FORMATS, PARSERS, PlacedRow, format_of

_MOST_NAMED = 20
_ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".xlsx", ".xls", ".ods")
_OF_ARCHIVES = "Unpack an archive first; save a spreadsheet as CSV."

__all__ = ["PlacedRow", "content_digest", "files_identity", "read_rows", "source_files"]


def read_rows(pattern: str, *, purpose: str, delimiter: str | None = None) -> Iterator[PlacedRow]:
    """Yield the rows of all files that `pattern` names, file by file in sorted order.

    Args:
        pattern: a file, a folder (all known files below it) or a glob with `**`; `~` is
            expanded, a relative path is relative to the current directory.
        purpose: the purpose of the rows, such as `background`; begins the error messages.
        delimiter: the sign between the columns of CSV and TSV; None: as their first line has it.

    Raises:
        InputError: at once if no file is found; while reading if a file is empty or a
            row cannot be read (file and line named).
    """
    files = source_files(pattern, purpose=purpose)
    other = next((file for file in files if format_of(file) not in DELIMITED), None)
    if delimiter is not None and other is not None:
        raise InputError(
            f"{purpose}: delimiter={delimiter!r} only applies to CSV and TSV",
            where=str(other),
            allowed=" ".join(DELIMITED),
        )
    return _rows(files, purpose, {} if delimiter is None else {"delimiter": delimiter})


def source_files(pattern: str, *, purpose: str = "rows") -> list[Path]:
    """Return the files that `pattern` names, sorted; hidden ones only when named outright.

    Raises:
        InputError: a missing path (with a similar sibling), no permission, no file of a known
            format, or an entry with such a name that is not a regular file.
    """
    if not pattern.strip():
        raise InputError(f"{purpose}: no file is named", allowed="a file, a folder or a glob")
    path = Path(os.path.expanduser(pattern))
    fixed = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    named = _list_named_files(pattern)
    files = [file for file in named if format_of(file)]
    if path.is_dir():
        if not files:
            raise InputError(
                f"{purpose}: no file of a known format in this folder",
                where=str(path),
                allowed=KNOWN_FORMATS,
            )
    elif path.is_symlink() and not path.exists():
        raise InputError(f"{purpose}: is a link to {path.readlink()}, which is gone", where=pattern)
    elif not path.exists() and not fixed.exists():
        missing = "file or folder" if fixed == path else "folder"
        raise InputError(f"{purpose}: no such {missing}", where=pattern, hint=_explain(fixed))
    elif not named:
        raise InputError(
            f"{purpose}: no file matches this pattern",
            where=pattern,
            hint="`**` stands for any folders below; the path of a folder names all its files.",
        )
    elif not files:
        raise InputError(
            f"{purpose}: unknown file extension {named[0].suffix or '(none)'!r}",
            where=str(named[0]),
            allowed=KNOWN_FORMATS,
            hint=_OF_ARCHIVES if named[0].suffix.lower() in _ARCHIVES else None,
        )
    for file in files:
        check_regular(file, purpose=purpose)
    return files


def unread_note(pattern: str, *, key: str) -> str | None:
    """Return a sentence that names the files that are not read; None if all are.

    Args:
        pattern: as for `source_files`, which reports the problem if no file can be read.
        key: the key of the experiment that has it.
    """
    named = _list_named_files(pattern)
    unread = [str(file) for file in named if not format_of(file)]
    if not unread or len(unread) == len(named):
        return None
    return (
        f"{key}: {len(unread):,} of the files have an unknown format and are not read: "
        f"{first_names(unread, _MOST_NAMED)}. Known are {KNOWN_FORMATS}"
    )


def files_identity(pattern: str) -> list[dict[str, str]]:
    """Return name (without its folder) and SHA-256 of the content of each file, sorted.

    The same files in another folder have the same identity.
    """
    identities = [
        {"name": path.name, "sha256": content_digest(path)} for path in source_files(pattern)
    ]
    return sorted(identities, key=lambda entry: (entry["name"], entry["sha256"]))


def _rows(files: list[Path], purpose: str, keywords: dict[str, str]) -> Iterator[PlacedRow]:
    for path in files:
        empty = True
        for row in PARSERS[format_of(path) or ""](path, purpose, **keywords):
            empty = False
            yield row
        if empty:
            raise InputError(f"{purpose}: the file contains no rows", where=str(path))


def _list_named_files(pattern: str) -> list[Path]:
    """Return the files that a file, a folder or a glob names, sorted, in any format."""
    path = Path(os.path.expanduser(pattern))
    if path.is_dir():
        return _list_files(path)
    if path.exists():
        return [path]
    # `**` yields the folder before it, even if there is none.
    matching = filter(os.path.lexists, map(Path, glob.glob(str(path), recursive=True)))
    return sorted(file for file in matching if not file.is_dir())


def _list_files(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise InputError(f"cannot be read: {error.strerror}", where=str(error.filename))

    files = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(parent, name) for name in names if not name.startswith(".")]
    return sorted(files)


def _explain(path: Path) -> str:
    """Describe the first missing part of a path, and similar names in its place."""
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    parent = missing.parent
    try:
        siblings = sorted(entry.name for entry in parent.iterdir())
    except OSError:
        return f"{parent} is not a folder that can be listed."
    hint = did_you_mean(missing.name, siblings).strip()
    if missing != path:
        hint = f"There is no {missing.name!r} in {parent.resolve()}. {hint}".strip()
    return hint or f"There is no {missing.name!r} in {parent.resolve()}."
