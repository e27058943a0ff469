"""Whether the folders for artifacts and runs can be used, checked before any work.

A wrong folder is an `InputError` that names the option to change. Writing is tried, not guessed
from permissions: a probe of 64 kB finds read-only and full disks, too.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from inject.errors import InputError
from spikein.store.filesystem import disk_full, free_space

STORE_OPTION = "--store"
RUNS_OPTION = "--runs"
CHANGE_STORE = f"Give another folder by {STORE_OPTION}."
CHANGE_RUNS = f"Give another folder by {RUNS_OPTION}."
PROBE_BYTES = 1 << 16
_ENVIRONMENT = (errno.EACCES, errno.EPERM, errno.EROFS)


def check_folder(folder: Path, option: str) -> None:
    """Check that a folder is one, or could be made; nothing is written.

    Raises:
        InputError: for a file, a link to nothing, or a path that leads through a file.
    """
    hint = f"Give another folder by {option}."
    try:
        if folder.is_symlink() and not folder.exists():
            raise InputError(
                f"is a link to {os.readlink(folder)}, which does not exist",
                where=str(folder),
                hint=f"Make that folder, or give another by {option}.",
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
    """Make a folder where it is lacking, and try to write there.

    Raises:
        InputError: when it is no folder, or nothing can be written.
    """
    check_folder(folder, option)
    probe = folder / f".{secrets.token_hex(4)}.probe.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
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


@contextmanager
def writing(folder: Path, hint: str, what: str) -> Iterator[None]:
    """Turn a disk that is full, or must not be written, into an error that says what and where.

    Args:
        folder: what is written lies below it.
        hint: what to do where it cannot be written.
        what: is being written.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if disk_full(error) or (read_only(error) and _below(error, folder)):
            raise _write_error(error, folder, hint, what) from error
        raise


def read_only(error: Exception) -> bool:
    """Return whether an error says that a file system or a folder must not be written."""
    return isinstance(error, OSError) and error.errno in _ENVIRONMENT


def _below(error: Exception, folder: Path) -> bool:
    name = getattr(error, "filename", None)
    return name is None or Path(os.fsdecode(name)).absolute().is_relative_to(folder.absolute())


def _write_error(error: Exception, folder: Path, hint: str, what: str = "") -> InputError:
    doing = f" while writing {what}" if what else ""
    if disk_full(error):
        return InputError(
            f"the disk is full: {free_space(folder)} left{doing}",
            where=str(folder),
            hint=f"Free some space; what was finished is kept. {hint}",
        )
    said = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(
        f"cannot be written{doing}: {said}",
        where=str(folder),
        hint=hint,
    )
