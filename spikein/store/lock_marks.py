"""The owner of a lock of the store: host, process and start, written into the lock file.

The lock itself is the operating system's (`flock`), which releases it when its process dies; a mark
only identifies the owner. The lock does not show whether a mark of another host is alive, since
some shared file systems keep locks on one host: the mark counts as alive, and is reported.
"""

import json
import os
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A process that uses the store, or builds one artifact of it."""

    host: str
    process: int
    started: str
    """When it first used a store, UTC; other processes may reuse its id."""
    since: str
    """When it took the lock, UTC to the second."""

    def __str__(self) -> str:
        """Return `process 12 on host, started …, since …`."""
        return (
            f"process {self.process} on {self.host}, started {self.started}, "
            f"here since {self.since} UTC"
        )


def own_mark() -> Mark:
    """Return the mark of this process."""
    return Mark(
        host=socket.gethostname(),
        process=os.getpid(),
        started=_STARTED,
        since=_utc(time.time()),
    )


def write_mark(lock: FileLock) -> None:
    """Write this process's mark into a lock file that it holds."""
    # On a full disk the lock still works, only without a name.
    with suppress(OSError):
        Path(lock.lock_file).write_text(json.dumps(asdict(own_mark())), encoding="utf-8")


def clear_mark(lock: FileLock) -> None:
    """Remove this process's mark from a lock file that it is about to release."""
    with suppress(OSError):
        os.truncate(lock.lock_file, 0)


def read_mark(path: Path) -> Mark | None:
    """Return the last recorded owner of a lock, or None."""
    with suppress(OSError, ValueError, TypeError):
        return Mark(**json.loads(path.read_text(encoding="utf-8")))
    return None


def mark_use(leases: Path) -> FileLock:
    """Mark that this process uses a store; return the lock to be released, its file deleted.

    Args:
        leases: the store's folder of locks; the caller holds the lock that keeps `gc` out.
    """
    active_uses(leases)
    lock = FileLock(leases / f"use-{os.getpid()}-{secrets.token_hex(4)}.lock")
    lock.acquire(timeout=0)
    write_mark(lock)
    return lock


def active_uses(leases: Path) -> list[Path]:
    """Return the marks of processes that use a store; those of dead ones are removed."""
    alive = []
    for path in sorted(leases.glob("use-*.lock")):
        if _is_dead(path):
            path.unlink(missing_ok=True)
        else:
            alive.append(path)
    return alive


def _is_dead(path: Path) -> bool:
    try:
        with FileLock(path).acquire(timeout=0):
            mark = read_mark(path)
            return mark is None or mark.host == socket.gethostname()
    except Timeout:
        return False


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


_STARTED = _utc(time.time())
"""When this process first used a store."""
