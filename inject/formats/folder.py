"""The folder of an export: hidden until it is whole, then renamed into place.

At the end each file is flushed to disk and the folder renamed, so that a half-written folder is
never visible; a kill leaves a hidden sibling (`.NAME.….tmp`), which the next export to the same
place removes.
"""

import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from inject.digest import file_digest
from inject.errors import InputError
from inject.files import fsync
from inject.verified_files import flush


def file_facts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return `sha256` and `bytes` of each file of a folder, by relative path."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: {"sha256": file_digest(path), "bytes": path.stat().st_size}
        for name, path in sorted(files.items())
        if path.is_file()
    }


@contextmanager
def exporting(out: Path) -> Iterator[Path]:
    """Yield a hidden folder; on success it becomes `out`, else it is removed.

    Raises:
        InputError: `out` exists and is not empty, or another process exports to it.
    """
    out = Path(os.path.abspath(out.expanduser()))
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
        if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
            raise InputError(
                "exists already, and is never overwritten",
                where=str(out),
                hint="Give another --out, or remove it first.",
            )
        # The lock is ours, so the process that was filling these is dead.
        for stale in out.parent.glob(f".{glob.escape(out.name)}.*.tmp"):
            shutil.rmtree(stale, ignore_errors=True)
        hidden = out.parent / f".{out.name}.{secrets.token_hex(4)}.tmp"
        hidden.mkdir()
        try:
            yield hidden
            flush(hidden)
            hidden.rename(out)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        fsync(out.parent)
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
