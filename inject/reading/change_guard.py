"""Digests of files, and a second look after reading: the content read is the content hashed.

An identity names files by SHA-256 before anything is built. Whoever reads them later does so inside
`unchanged`, which computes the identity again after the reading and rejects files that have become
another. A digest is remembered in the process for as long as the file keeps its inode, its size and
its times, including that of the last change to the inode, which no program can set back; a file
that changed within the last two seconds is hashed again each time, since clocks of file systems are
coarse. So another look costs a few microseconds per file.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inject.digest import canonical, file_digest
from inject.errors import InputError

_SETTLED_NS = 2_000_000_000
_AGAIN = "Nothing of it was kept; run again when no other process writes to it."


_known: dict[str, tuple[tuple[int, ...], str]] = {}


def content_digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file's content, read once a process while it is unchanged.

    Raises:
        InputError: a file that cannot be read or is being written.
    """
    try:
        name = os.path.realpath(path)
        state = _state(name)
        cached = _known.get(name)
        if cached is not None and cached[0] == state:
            return cached[1]
        digest = file_digest(Path(name))
        same = _state(name) == state
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not same:
        raise InputError("changed while it was read", where=str(path), hint=_AGAIN)
    if time.time_ns() - max(state[-2:]) > _SETTLED_NS:
        _known[name] = state, digest
    return digest


def _state(name: str) -> tuple[int, ...]:
    """Return the marks of a change: device, inode, size, times of its content and its inode."""
    stat = os.stat(name)
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@contextmanager
def unchanged(key: str, identity: Callable[[], Any], named: Any) -> Iterator[None]:
    """Read something inside; afterwards its identity must still be the one it was named by.

    Args:
        key: the key in the experiment file, for the message.
        identity: computes the identity again.
        named: the identity when the step got its digest.

    Raises:
        InputError: another identity; names the file that was changed, added or removed.
    """
    yield
    now = identity()
    if canonical(now) != canonical(named):
        raise InputError(
            f"{_difference(named, now)} after it was hashed, so the content read may differ from "
            "the content that identifies the result",
            where=key,
            hint=_AGAIN,
        )


def _difference(before: Any, after: Any) -> str:
    earlier, later = dict(_files(before)), dict(_files(after))
    for name, digest in later.items():
        if name not in earlier:
            return f"{name} appeared"
        if earlier[name] != digest:
            return f"{name} changed"
    missing = [name for name in earlier if name not in later]
    return f"{missing[0]} disappeared" if missing else "it changed"


def _files(identity: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the digest of each file that an identity names."""
    if isinstance(identity, Mapping):
        if {"name", "sha256"} <= identity.keys():
            yield str(identity["name"]), str(identity["sha256"])
        for name, value in identity.items():
            if name == "files" and isinstance(value, Mapping):
                yield from ((str(file), str(digest)) for file, digest in value.items())
            else:
                yield from _files(value)
    elif isinstance(identity, list | tuple):
        for value in identity:
            yield from _files(value)
