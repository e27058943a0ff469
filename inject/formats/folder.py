"""The folder of an export: hidden until it is whole, then renamed into place.

Everything goes through `ExportFolder.open`, which hashes what is written. At the end each file is
flushed to disk and the folder renamed, so that nobody sees half of it; a kill leaves a hidden
sibling (`.NAME.….tmp`), which the next export to the same place removes.
"""

import glob
import hashlib
import io
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from filelock import FileLock, Timeout

from inject.digest import file_digest
from inject.errors import InputError
from inject.files import fsync
from inject.sealed import flush


class FileFacts(NamedTuple):
    """One exported file."""

    sha256: str
    bytes: int


class HashedFile(io.RawIOBase):
    """A file that hashes what is written to it, front to back.

    Closing it (pyarrow does) leaves the file below open, which belongs to `ExportFolder.open`.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._hash = hashlib.sha256()
        self._bytes = 0

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Write anything that has a contiguous buffer; return its bytes."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self._hash.update(view)
        self._bytes += len(view)
        return len(view)

    def facts(self) -> FileFacts:
        """Return digest and size of what was written."""
        return FileFacts(self._hash.hexdigest(), self._bytes)


class ExportFolder:
    """The hidden folder while it is filled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, FileFacts] = {}
        """By relative path; what `open` and `add_rest` have finished."""

    @contextmanager
    def open(self, name: str) -> Iterator[HashedFile]:
        """Write one file of the export."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            hashed = HashedFile(file)
            yield hashed
        self.files[name] = hashed.facts()

    def rename(self, name: str, new: str) -> None:
        """Rename a finished file."""
        (self.path / name).rename(self.path / new)
        self.files[new] = self.files.pop(name)

    def add_rest(self) -> None:
        """Take note of files that were written by somebody else, such as a tokenizer's."""
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path).as_posix()
            if path.is_file() and name not in self.files:
                self.files[name] = FileFacts(file_digest(path), path.stat().st_size)


@contextmanager
def exporting(out: Path) -> Iterator[ExportFolder]:
    """Yield a hidden folder; where all goes well it becomes `out`, else it is removed.

    Raises:
        InputError: `out` exists and is not empty, or another process exports to it.
    """
    out = Path(os.path.abspath(out.expanduser()))
    _check_free(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(out.parent / f".{out.name}.lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError("another process is exporting to it", where=str(out)) from None
    except OSError as error:
        problem = f"cannot be written to: {error.strerror}"
        raise InputError(problem, where=str(out.parent)) from error
    try:
        _check_free(out)
        # The lock is ours, so whoever was filling these is dead.
        for stale in out.parent.glob(f".{glob.escape(out.name)}.*.tmp"):
            shutil.rmtree(stale, ignore_errors=True)
        hidden = out.parent / f".{out.name}.{secrets.token_hex(4)}.tmp"
        hidden.mkdir()
        try:
            yield ExportFolder(hidden)
            flush(hidden)
            hidden.rename(out)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        fsync(out.parent)
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _check_free(out: Path) -> None:
    if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
        raise InputError(
            "exists already, and is never overwritten",
            where=str(out),
            hint="Give another --out, or remove it first.",
        )
