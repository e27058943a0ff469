"""The layout of an import, found before a token is read: files, ranges in them, element width.

Positions count tokens of the whole stream, the files one after the other. Nothing here reads
tokens; finding the files of a corpus costs as much as listing them.
"""

import glob
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inject.errors import InputError, did_you_mean
from inject.keyed import I64

_UNSIGNED = {"<u2": "<u2", "<u4": "<u4", "<i2": "<u2", "<i4": "<u4"}


@dataclass(frozen=True, kw_only=True)
class TokenFile:
    """A span of one file: `tokens` elements after `skip_bytes`."""

    path: Path
    """Absolute, links resolved."""
    skip_bytes: int = 0
    """Length of a header."""
    tokens: int
    dtype: np.dtype

    @property
    def readable_as(self) -> str | None:
        """The unsigned type with which a corpus can read the file in place, or None.

        Signed files count if they are wide enough: a negative id would be far outside of
        any vocabulary, so checking the vocabulary finds it.
        """
        return _UNSIGNED.get(self.dtype.str)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The token files of a corpus, in the order of the stream."""

    files: tuple[TokenFile, ...]
    documents: Callable[[], Iterator[I64]] | None
    """Yields blocks of ascending document starts, the first of all 0; None if a document
    is what ends with the end token, or with its file."""

    @property
    def tokens(self) -> int:
        """Tokens in all files."""
        return sum(file.tokens for file in self.files)


def found_files(pattern: str, *suffixes: str, purpose: str) -> list[Path]:
    """Return the files that a path, a folder (all such files below it) or a glob names.

    Args:
        pattern: as the user wrote it; `~` is expanded.
        suffixes: such as `.npy`; of folders and globs, other files are left aside.
        purpose: begins the error messages.

    Raises:
        InputError: nothing there.
    """
    path = Path(os.path.expanduser(pattern))
    if path.is_file():
        return [path.resolve()]
    if path.is_dir():
        named = sorted(file for file in path.rglob("*") if _is_visible(file, path))
    else:
        named = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    files = [file.resolve() for file in named if file.is_file() and file.suffix in suffixes]
    if files:
        return files
    raise InputError(
        f"{purpose}: no {' or '.join(suffixes)} file here",
        where=pattern,
        allowed=f"such a file, a folder that contains some, or a glob such as DIR/*{suffixes[0]}",
        hint=_suggest_name(path) or None,
    )


def token_files(imported: Mapping[str, Any] | None) -> tuple[Path, ...] | None:
    """Return the current paths of an import's token files, in the order of the stream.

    None if a corpus has its own tokens, as that of rows does.

    Args:
        imported: the import's settings as plain values; None for a corpus that was built.

    Raises:
        InputError: no such files.
    """
    if imported is None or imported["kind"] not in ("megatron", "olmo"):
        return None
    if imported["kind"] == "megatron":
        return tuple(map(bin_of, megatron_indices(imported["path"])))
    return tuple(olmo_files(imported["path"]))


def megatron_indices(pattern: str) -> list[Path]:
    """Return the `.idx` files that a prefix, a folder or a glob names."""
    stem = pattern.removesuffix(".idx").removesuffix(".bin")
    index = Path(f"{stem}.idx").expanduser()
    if index.is_file():
        return [index.resolve()]
    return found_files(pattern.replace(".bin", ".idx"), ".idx", purpose="megatron")


def bin_of(index: Path) -> Path:
    """Return the token file that belongs to an `.idx` file."""
    return index.with_suffix(".bin")


def olmo_files(pattern: str) -> list[Path]:
    """Return the `.npy` files that a path, a folder or a glob names."""
    return found_files(pattern, ".npy", purpose="olmo")


def size_of(path: Path) -> int:
    """Return the bytes of a file.

    Raises:
        InputError: an unreadable file.
    """
    try:
        with path.open("rb"):
            return path.stat().st_size
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _is_visible(file: Path, folder: Path) -> bool:
    parts = file.relative_to(folder).parts
    return not any(part.startswith(".") for part in parts)


def _suggest_name(path: Path) -> str:
    try:
        return did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()]).strip()
    except OSError:
        return ""
