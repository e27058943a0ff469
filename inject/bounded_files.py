"""Files from outside, opened so that none can make a reader wait for ever or fill its memory.

Only regular files are read, after links are resolved: a pipe, a socket or a device is refused by
name, without waiting for it. The unpacked size of a compressed file is bounded by its own size, and
so is the part of any file in memory at a time; readers stop at the bound, not after it. Cost: one
`stat` per file and one comparison per line.
"""

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from inject.errors import InputError

LARGEST_RATIO = 200
"""Maximum unpacked size of a compressed file, relative to its size; text rarely passes 20."""
FREE_BYTES = 1 << 24
"""Bytes unpacked at any ratio: small files of one repeated line are legitimate."""
ROW_BYTES = 1 << 27
"""Longest line, or row of CSV."""
WHOLE_BYTES = 1 << 30
"""Largest file that is read into memory as a whole: an array in `.json`, a `.txt`."""

_PIECE = 1 << 22
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_regular(path: Path, *, purpose: str = "") -> None:
    """Reject a path that is missing, hidden or not a regular file, without opening it.

    Args:
        path: links are followed.
        purpose: what the file is for; begins the message.

    Raises:
        InputError: naming the path and its kind.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise _unreadable_error(path, purpose, error) from error
    _refuse_others(mode, path, purpose)


def open_regular(path: Path, *, purpose: str = "") -> BinaryIO:
    """Open a regular file for reading, unbuffered by text; a pipe is never waited for.

    Raises:
        InputError: not a regular file, or cannot be opened.
    """
    check_regular(path, purpose=purpose)
    try:
        # The file may have been replaced since: a pipe would hold a blocking open for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable_error(path, purpose, error) from error
    try:
        _refuse_others(os.fstat(handle).st_mode, path, purpose)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_lines(path: Path, purpose: str) -> Iterator[bytes]:
    """Yield the lines of a file with their ends; one named `.gz` or `.zst` is unpacked on the way.

    Raises:
        InputError: a file that cannot be read, is truncated or damaged, unpacks to more than its
            size explains, or has a line of more than `ROW_BYTES`.
    """
    number = total = 0
    with _open_unpacked(path, purpose) as (raw, file):
        packed = file is not raw
        while True:
            pieces: list[bytes] = []
            length = 0
            while True:
                piece = _read_piece(file, path, number, purpose)
                total += len(piece)
                length += len(piece)
                if packed and total > FREE_BYTES and total > LARGEST_RATIO * raw.tell():
                    raise _too_dense(path, purpose, total, raw.tell())
                if length > ROW_BYTES:
                    raise _too_long(f"{path}:{number + 1}", purpose, "a line")
                pieces.append(piece)
                if len(piece) < _PIECE or piece.endswith(b"\n"):
                    break
            if not length:
                return
            number += 1
            yield pieces[0] if len(pieces) == 1 else b"".join(pieces)


def check_row(length: int, place: str, purpose: str) -> None:
    """Refuse a row of several lines that is longer than `ROW_BYTES`."""
    if length > ROW_BYTES:
        raise _too_long(place, purpose, "a row")


def check_whole(length: int, path: Path, purpose: str) -> None:
    """Reject a file of more than `WHOLE_BYTES` that would be read into memory as a whole."""
    if length > WHOLE_BYTES:
        raise InputError(
            f"{purpose}: larger than {_size(WHOLE_BYTES)}, and is read as a whole",
            where=str(path),
            hint="Write it as JSON Lines (.jsonl), which is read line by line.",
        )


def check_unpacked(
    unpacked: int, packed: int, path: Path, purpose: str, *, hint: str | None = None
) -> None:
    """Refuse content that unpacks to more than the packed size explains.

    Args:
        unpacked: bytes, announced or counted so far.
        packed: bytes.
        path: begins the message.
        purpose: what the file is for.
        hint: the remedy; None for unpacking it oneself.
    """
    if unpacked > FREE_BYTES and unpacked > LARGEST_RATIO * packed:
        raise _too_dense(path, purpose, unpacked, packed, hint)


@contextmanager
def _open_unpacked(path: Path, purpose: str) -> Iterator[tuple[BinaryIO, IO[bytes]]]:
    """Yield the raw file and the unpacked one; the same file twice if it is not compressed."""
    with open_regular(path, purpose=purpose) as raw:
        packing = path.name.lower().rpartition(".")[2]
        if packing == "gz":
            with gzip.GzipFile(fileobj=raw, mode="rb") as file:
                yield raw, cast(IO[bytes], file)
        elif packing == "zst":
            import pyarrow as pa

            # Knows several frames in a file, and that one is cut off.
            with io.BufferedReader(pa.CompressedInputStream(raw, "zstd")) as file:
                yield raw, file
        else:
            yield raw, raw


def _read_piece(file: IO[bytes], path: Path, number: int, purpose: str) -> bytes:
    try:
        return file.readline(_PIECE)
    except (EOFError, zlib.error, OSError) as error:
        # An error of the system has a number, one of a decompressor has none.
        if isinstance(error, OSError) and error.errno is not None:
            raise _unreadable_error(path, purpose, error) from error
        raise InputError(
            f"{purpose}: the compressed file is truncated or damaged after line {number} ({error})",
            where=str(path),
            hint="Copy or download it again.",
        ) from error


def _refuse_others(mode: int, path: Path, purpose: str) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "not a regular file")
    raise InputError(
        f"{_prefix(purpose)}is {kind}",
        where=str(path),
        allowed="regular files, and links to them",
        hint="Move it out of the folder, or name the files that are meant.",
    )


def _unreadable_error(path: Path, purpose: str, error: OSError) -> InputError:
    if not isinstance(error, FileNotFoundError):
        reason = f"cannot be read: {error.strerror or error}"
    else:
        reason = "a link to nothing" if path.is_symlink() else "no such file"
    return InputError(f"{_prefix(purpose)}{reason}", where=str(path))


def _too_dense(
    path: Path, purpose: str, unpacked: int, packed: int, hint: str | None = None
) -> InputError:
    return InputError(
        f"{_prefix(purpose)}unpacks to more than {LARGEST_RATIO} times its size "
        f"({_size(unpacked)} of {_size(packed)} so far), as a decompression bomb does",
        where=str(path),
        hint=hint or "If the file is sound, unpack it yourself and pass the unpacked file.",
    )


def _too_long(place: str, purpose: str, part: str) -> InputError:
    return InputError(
        f"{_prefix(purpose)}{part} of more than {_size(ROW_BYTES)}",
        where=place,
        hint="Split it into several rows.",
    )


def _prefix(purpose: str) -> str:
    return f"{purpose}: " if purpose else ""


def _size(number: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:,} {unit}"
        number //= 1024
    return f"{number:,} GiB"
