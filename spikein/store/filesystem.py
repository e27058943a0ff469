"""The store and the file system: flushing, deleting, folders that cannot be used, full disks.

Artifacts are read-only, folders included, so that deleting one needs its permissions first. Folders
for artifacts and runs are checked before any work: a wrong one is an `InputError` that names the
option to change. Writing is tried, not guessed from permissions: a probe of 64 kB also finds
read-only and full disks.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from inject.errors import InputError
from inject.files import disk_full, free_bytes, fsync_all, human_bytes, nearest_existing
from spikein.store.manifest import MANIFEST, Manifest, StoreError

STORE_OPTION = "--store"
RUNS_OPTION = "--runs"
CHANGE_STORE = f"Give another folder by {STORE_OPTION}."
CHANGE_RUNS = f"Give another folder by {RUNS_OPTION}."
AnyPath = str | os.PathLike[str]
"""A path given by a user."""
PROBE_BYTES = 1 << 16
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


def store_folder(path: AnyPath | None = None) -> Path:
    """Return the folder of artifacts."""
    return Path(path or os.environ.get("SPIKEIN_STORE") or "store")


def runs_folder(path: AnyPath | None = None) -> Path:
    """Return the folder of runs."""
    return Path(path or os.environ.get("SPIKEIN_RUNS") or "runs")


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
    """Delete a tree even if its folders are read-only; a missing tree is not an error.

    A link, or a file in place of a folder, is itself deleted: the target of a link is neither
    read, changed nor deleted.
    """
    if folder.is_symlink() or folder.is_file():
        folder.unlink(missing_ok=True)
        return
    for path, _, _ in os.walk(folder, followlinks=False):
        with suppress(OSError):
            os.chmod(path, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def check_folder(folder: Path, option: str) -> None:
    """Check that a path is a folder, or could become one; write nothing.

    Raises:
        InputError: for a file, a link to nothing, or a path that leads through a file.
    """
    hint = f"Give another folder by {option}."
    try:
        if folder.is_symlink() and not folder.exists():
            raise InputError(
                f"is a link to {os.readlink(folder)}, which does not exist",
                where=str(folder),
                hint=f"Create that folder, or give another by {option}.",
            )
        os.stat(folder)
    except FileNotFoundError:
        if folder.parent != folder:
            check_folder(folder.parent, option)
        return
    except NotADirectoryError:
        raise InputError("leads through a file", where=str(folder), hint=hint) from None
    except OSError as error:
        raise InputError(
            f"cannot be used: {error.strerror}", where=str(folder), hint=hint
        ) from None
    if not folder.is_dir():
        raise InputError("is a file, not a folder", where=str(folder), hint=hint)


def check_writable(folder: Path, option: str) -> None:
    """Try to write to a folder, or to its nearest existing parent; leave nothing behind.

    Raises:
        InputError: for a path that is not a folder or cannot be written.
    """
    check_folder(folder, option)
    probe = nearest_existing(folder) / f".{secrets.token_hex(4)}.probe.tmp"
    try:
        probe.mkdir()
        with (probe / "file").open("wb") as file:
            file.write(b"\0" * PROBE_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _write_error(error, folder, f"Give another folder by {option}.") from error
    finally:
        with suppress(OSError):
            (probe / "file").unlink(missing_ok=True)
            probe.rmdir()


def check_file(path: Path) -> None:
    """Check before any work that the file of `--out` can be written.

    Raises:
        InputError: for a folder, or a file in a folder that cannot be written.
    """
    if path.is_dir():
        raise InputError(
            "is a folder, not a file", where=str(path), hint="Give another file by --out."
        )
    check_writable(path.parent, "--out")


@contextmanager
def writing(folder: Path, hint: str, description: str) -> Iterator[None]:
    """Turn the error of a full or read-only disk into one that names the file and the remedy.

    Args:
        folder: the folder of the written files.
        hint: what to do if it cannot be written.
        description: a description of the written files.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        if disk_full(error) or (read_only(error) and _is_below(error, folder)):
            raise _write_error(error, folder, hint, description) from error
        raise


def read_only(error: Exception) -> bool:
    """Return whether an error means that a file system or a folder is read-only."""
    return isinstance(error, OSError) and error.errno in _UNWRITABLE


def _is_below(error: Exception, folder: Path) -> bool:
    name = getattr(error, "filename", None)
    if name is None:
        return getattr(error, "errno", None) == errno.EROFS
    return Path(os.fsdecode(name)).absolute().is_relative_to(folder.absolute())


def _write_error(error: Exception, folder: Path, hint: str, description: str = "") -> StoreError:
    doing = f" while writing {description}" if description else ""
    if disk_full(error):
        return StoreError(
            f"the disk is full: {human_bytes(free_bytes(folder))} left{doing}",
            where=str(folder),
            hint=f"Free some space; finished steps are kept. {hint}",
        )
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return StoreError(f"cannot be written{doing}: {reason}", where=str(folder), hint=hint)
