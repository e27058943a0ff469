"""Damage to files of a store, for the tests of this package; hard links are broken first."""

import os
from collections.abc import Callable
from pathlib import Path


def own(path: Path) -> None:
    """Give a file an inode of its own, in folders that can be written."""
    path.parent.chmod(0o755)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def flip(path: Path) -> None:
    """Change one byte in the middle, and leave size and modification time as they were."""
    times = path.stat()
    own(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x55
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def truncate(path: Path) -> None:
    """Leave the first half."""
    own(path)
    os.truncate(path, path.stat().st_size // 2)


def lose(path: Path) -> None:
    """Remove the file."""
    path.parent.chmod(0o755)
    path.unlink()


def link(path: Path) -> None:
    """Replace the file by a link to the same content elsewhere."""
    path.parent.chmod(0o755)
    elsewhere = path.parent.parent / f".elsewhere-{path.name}"
    elsewhere.parent.chmod(0o755)
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "flipped": flip,
    "truncated": truncate,
    "missing": lose,
    "linked": link,
}
