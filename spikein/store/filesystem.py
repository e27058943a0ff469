"""The store and the file system: flushing, deleting, and disks that are full.

Artifacts are read-only, folders included, so that deleting one needs its permissions first.
"""

import errno
import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from inject.files import fsync_all, human_bytes
from spikein.store.manifest import MANIFEST, Manifest

_SAYS_FULL = re.compile(
    r"No space left on device|os error 28|^\d+ requested and \d+ written$"  # the last is numpy's
)


def free_space(path: Path) -> str:
    """Return the free space of the file system at `path`, such as `1.2 GB`."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return human_bytes(shutil.disk_usage(path).free)


def finish_artifact(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of an artifact, flush every file to disk, make everything read-only."""
    (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    files = [folder / name for name in (*manifest.files, MANIFEST)]
    for path in files:
        path.chmod(0o444)
    folders = sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True)
    fsync_all([*files, *folders, folder])
    for path in (*folders, folder):
        path.chmod(0o555)


def delete_tree(folder: Path) -> None:
    """Delete a tree even where its folders are read-only; what is gone already is no error.

    A link, or a file in a folder's place, is deleted as that: what a link leads to is neither
    read, changed nor deleted.
    """
    if folder.is_symlink() or folder.is_file():
        folder.unlink(missing_ok=True)
        return
    for path, _, _ in os.walk(folder, followlinks=False):
        with suppress(OSError):
            os.chmod(path, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def disk_full(error: BaseException | None) -> bool:
    """Return whether an error, or what caused it, says that there is no space left."""
    # Libraries written in Rust and C++ wrap the operating system's error in a text of theirs.
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if _SAYS_FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def unwritable(error: Exception, root: Path) -> bool:
    """Return whether an error says that something below `root` must not be written."""
    codes = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
    return (
        isinstance(error, OSError)
        and error.errno in codes
        and error.filename is not None
        and Path(os.fsdecode(error.filename)).absolute().is_relative_to(root.absolute())
    )
