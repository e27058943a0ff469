"""One finished artifact, opened and verified against its manifest, once per process and file.

Code that reads the files of an artifact calls `verified` first: steps for their inputs, commands
for the artifacts of a finished run.

Listing the folder reveals a file that was replaced by a link, is extra, missing or of another
size. Contents are hashed with XXH3, at the speed of reading: `python -m scripts.bench.verifying`.
Within one process a file is not hashed again while its inode, size and times are unchanged; the
kernel sets its change time at every write, so that resetting the modification time hides nothing.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inject.verified_files import quick_digest
from spikein.store.manifest import (
    DAMAGE_HINT,
    MANIFEST,
    FileRecord,
    Manifest,
    StoreError,
    matching,
    read_manifest,
)

_SETTLED_NS = 100_000_000
"""A file written this recently may be written again without a change of its times."""

_Stamp = tuple[int, int, int, int, int]
_checked: dict[str, tuple[_Stamp, FileRecord]] = {}
"""Path to the file's status when this process verified its content."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One finished artifact."""

    path: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        """Identity: the digest of its recipe."""
        return self.manifest.digest

    def __truediv__(self, name: str) -> Path:
        """Return the path of one of its files."""
        return self.path / name


def open_artifact(folder: Path) -> Artifact:
    """Open an artifact by its folder; its manifest and its listing of files are checked.

    Call `verified` before reading the files.

    Raises:
        StoreError: when it is damaged, naming the file.
    """
    manifest = read_manifest(folder)
    _require_structure(folder, manifest)
    return Artifact(path=folder, manifest=manifest)


def verified(artifact: Artifact, files: Iterable[str] = ("*",)) -> Artifact:
    """Return an artifact after checking that its files have their original content.

    Every reading of an artifact follows this; within one process a file is hashed once.

    Args:
        artifact: an open artifact.
        files: patterns of the files to read.

    Raises:
        StoreError: when it is damaged, naming the file.
    """
    _require_structure(artifact.path, artifact.manifest)
    _require_content(artifact.path, artifact.manifest, files)
    return artifact


def require_current(artifact: Artifact, inputs: Mapping[str, Manifest]) -> None:
    """Check that the inputs of an artifact still have the content it was built from.

    Raises:
        StoreError: naming the input whose content differs.
    """
    name = artifact.manifest.stale_input(inputs)
    if name is not None:
        raise StoreError(
            f"was built from content that its input {name} no longer has",
            where=str(artifact.path),
            hint=DAMAGE_HINT,
        )


def _require_structure(folder: Path, manifest: Manifest) -> None:
    """Check a folder's listing: every file is there, plain, of its size, and there is no other.

    Raises:
        StoreError: naming the first file that differs from the manifest.
    """
    if folder.is_symlink():
        raise _damage("is a link, but an artifact must be a folder", folder)
    statuses: dict[str, os.stat_result] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                raise _damage("was replaced by a link", path)
            if not stat.S_ISDIR(status.st_mode):
                statuses[path.relative_to(folder).as_posix()] = status
    for name, record in manifest.files.items():
        if name not in statuses:
            raise _damage("is missing", folder / name)
        status = statuses[name]
        if not stat.S_ISREG(status.st_mode):
            raise _damage("is not a plain file", folder / name)
        if status.st_size != record.size:
            raise _damage(f"has {status.st_size} bytes instead of {record.size}", folder / name)
    extra = sorted(set(statuses) - set(manifest.files) - {MANIFEST})
    if extra:
        raise _damage("is not part of the artifact", folder / extra[0])


def _require_content(folder: Path, manifest: Manifest, files: Iterable[str]) -> None:
    """Hash the files that match the patterns, except those known to be unchanged.

    Raises:
        StoreError: naming the first file whose content differs from the manifest.
    """
    for name, record in sorted(matching(manifest.files, files).items()):
        path = folder / name
        try:
            before = _stamp(path)
            verified_status = _checked.get(str(path.absolute()))
            if verified_status == (before, record):
                continue
            same = quick_digest(path) == record.xxh3
            after = _stamp(path)
        except OSError as error:
            raise _damage(f"cannot be read ({error.strerror})", path) from error
        if not same or before != after:
            raise _damage("changed since it was built", path)
        if time.time_ns() - max(after[-2:]) > _SETTLED_NS:
            _checked[str(path.absolute())] = (after, record)


def require_sha256(artifact: Artifact) -> None:
    """Check the listing and hash every file with SHA-256, even if it was hashed before.

    Raises:
        StoreError: naming the first file that is missing, changed, or not in the manifest.
    """
    folder, manifest = artifact.path, artifact.manifest
    _require_structure(folder, manifest)
    for name, record in sorted(manifest.files.items()):
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != record.sha256:
                raise _damage("changed since it was built", folder / name)


def _stamp(path: Path) -> _Stamp:
    of = path.lstat()
    return of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns


def _damage(problem: str, path: Path) -> StoreError:
    return StoreError(problem, where=str(path), hint=DAMAGE_HINT)
