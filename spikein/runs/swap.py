"""Putting one folder in the place of another in a single step, flushed to disk before."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from inject.files import fsync

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def flush_tree(folder: Path) -> None:
    """Flush every file and folder below `folder` to disk; what may not be read is skipped."""
    for path in folder.rglob("*"):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            with suppress(PermissionError):
                fsync(path)
    fsync(folder)


def swap(new: Path, final: Path) -> None:
    """Put `new` in the place of `final`; the old folder, if any, ends at `new`'s name."""
    if not final.exists():
        new.rename(final)
        return
    if _exchange(new, final):
        return
    aside = new.with_name(f"{new.name.removesuffix('.tmp')}.old.tmp")
    final.rename(aside)
    try:
        new.rename(final)
    except OSError:
        aside.rename(final)
        raise
    aside.rename(new)


def _exchange(one: Path, other: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        call = ctypes.CDLL(None, use_errno=True).renameat2
        paths = os.fsencode(one), os.fsencode(other)
        return bool(call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
    return False
