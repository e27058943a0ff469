"""Damage to files of a store, for the tests of this package.

The file itself is set aside and a damaged one put in its place, so that hard links to it stay whole
and the damage can be taken back.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spikein.store.manifest import content_digest, file_records, read_manifest

DAMAGES = ("flipped", "truncated", "missing", "linked")


def damage(path: Path, how: str, aside: Path) -> None:
    """Damage a file: one byte flipped (size and modification time kept), cut, gone, or a link.

    Args:
        path: the file.
        how: one of `DAMAGES`.
        aside: destination of the intact file, and target of a link.
    """
    path.parent.chmod(0o755)
    path.rename(aside)
    content, times = bytearray(aside.read_bytes()), aside.stat()
    if how == "flipped":
        content[len(content) // 2] ^= 0x55
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "linked":
        path.symlink_to(aside)


def restore(path: Path, aside: Path) -> None:
    """Take the damage back."""
    path.unlink(missing_ok=True)
    aside.rename(path)


def own(path: Path) -> None:
    """Give a file its own inode, in a writable folder."""
    path.parent.chmod(0o755)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def flip(path: Path, *, in_place: bool = False) -> None:
    """Change one byte in the middle, and leave size and modification time as they were.

    Args:
        path: the file.
        in_place: also keep its inode, which links share.
    """
    times = path.stat()
    if in_place:
        path.chmod(0o644)
    else:
        own(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x55
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def forge(folder: Path, name: str, facets: Mapping[str, str] | None = None) -> None:
    """Flip a byte of an artifact's file, and update its manifest to match."""
    flip(folder / name)
    seal(folder, facets)


def seal(folder: Path, facets: Mapping[str, str] | None = None) -> None:
    """Rewrite an artifact's manifest to match its files."""
    manifest, files = read_manifest(folder), file_records(folder)
    content = content_digest(files, manifest.volatile)
    forged = replace(
        manifest,
        files=files,
        content=content,
        facets=manifest.facets if facets is None else facets,
    )
    own(folder / "manifest.json")
    (folder / "manifest.json").write_text(forged.to_json())
