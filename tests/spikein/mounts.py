"""Real small file systems, if the machine lets us mount them: full ones and read-only ones."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, *, kilobytes: int) -> Iterator[Path]:
    """Mount an empty file system of a size; skip the test if that is not permitted."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder))
    try:
        yield folder
    finally:
        _when_free("umount", str(folder))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, even for root; skip the test if that is not permitted."""
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,ro,bind", str(folder))
        yield
    finally:
        _when_free("umount", str(folder))


def _mount(*arguments: str) -> None:
    try:
        _when_free("mount", *arguments)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system is not permitted here")


def _when_free(*command: str) -> None:
    """Run a command, again while a process that runs has a file of the folder open."""
    for _ in range(50):
        done = subprocess.run(command, capture_output=True, text=True)
        if "busy" not in done.stderr:
            break
        time.sleep(0.05)
    done.check_returncode()
