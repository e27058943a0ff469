"""Run folders: `runs/<name>/`, whole or absent, with links to the artifacts they rest on.

A run folder is filled in a hidden sibling and swapped with the old one in a single step where
the system can (Linux: `renameat2` with RENAME_EXCHANGE), else by two renames. Links are
relative, so that a folder holding both `runs/` and `store/` can be moved as one.
"""

import ctypes
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from inject.digest import digest
from inject.errors import InputError, did_you_mean
from inject.files import fsync
from spikein.artifact import Artifact
from spikein.disk import delete_tree
from spikein.store import short_digest

ARTIFACTS = "artifacts"
_MARK = ".spikein-run"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def publish_run(runs_root: Path, name: str, fill: Callable[[Path], None]) -> Path:
    """Make or replace the run folder `name`; readers see the old one or the whole new one.

    Args:
        runs_root: the folder of all runs.
        name: a safe folder name (experiment names are).
        fill: writes everything into the hidden folder it is given.

    Returns:
        The run folder.

    Raises:
        InputError: when a folder of that name exists that is no run folder.
    """
    final = runs_root / name
    leases = runs_root / ".leases"
    leases.mkdir(parents=True, exist_ok=True)
    with FileLock(leases / f"{name}.lock"):
        if final.exists() and not (final / _MARK).is_file():
            raise InputError(
                "exists and was not made by spikein, so it is not replaced",
                where=str(final),
                hint="Give the experiment another name, or give another --runs folder.",
            )
        key = digest(name)[:12]
        for stale in runs_root.glob(f".{key}.*.tmp"):
            delete_tree(stale)
        hidden = runs_root / f".{key}.{secrets.token_hex(4)}.tmp"
        hidden.mkdir()
        try:
            (hidden / _MARK).touch()
            fill(hidden)
            _flush(hidden)
            _swap(hidden, final)
        finally:
            delete_tree(hidden)
        fsync(runs_root)
    return final


def link_artifact(run_folder: Path, artifact: Artifact) -> Path:
    """Link an artifact under `artifacts/<kind>/` of a run folder (hidden or final)."""
    folder = run_folder / ARTIFACTS / artifact.manifest.kind
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / artifact.path.name
    if not link.is_symlink():
        link.symlink_to(os.path.relpath(artifact.path.resolve(), folder.resolve()))
    return link


def linked_artifacts(run_folder: Path) -> Iterator[Path]:
    """Yield the artifact folders that a run folder links to, dangling links included."""
    for link in sorted((run_folder / ARTIFACTS).glob("*/*")):
        if link.is_symlink():
            yield Path(os.path.normpath(link.parent.resolve() / os.readlink(link)))


def run_folders(runs_root: Path) -> list[Path]:
    """Return all run folders, by name."""
    if not runs_root.is_dir():
        return []
    return [folder for folder in sorted(runs_root.iterdir()) if is_run(folder)]


def find_run(runs_root: Path, name: str) -> Path:
    """Return a run folder by its name below `runs_root`, or by its path.

    Raises:
        InputError: when there is none, with the runs that there are.
    """
    for folder in (runs_root / name, Path(name)):
        if is_run(folder):
            return folder
    known = [folder.name for folder in run_folders(runs_root)]
    raise InputError(
        f"no run is called {name!r}.{did_you_mean(name, known)}",
        where=str(runs_root),
        allowed=", ".join(known) or None,
        hint=None if known else "There are no runs yet; start with `spikein run FILE`.",
    )


def mark_of(folder: Path) -> Path:
    """Return the file that tells a run folder from any other; its time is the publication's."""
    return folder / _MARK


def is_run(folder: Path) -> bool:
    """Return whether a folder was made by `publish_run` and is visible."""
    return not folder.name.startswith(".") and (folder / _MARK).is_file()


def referenced(runs_root: Path) -> set[str]:
    """Return the short digests of all artifacts that any run folder links to."""
    return {
        short_digest(folder)
        for run_folder in run_folders(runs_root)
        for folder in linked_artifacts(run_folder)
    }


def _flush(folder: Path) -> None:
    for path in folder.rglob("*"):
        if not path.is_symlink():
            fsync(path)
    fsync(folder)


def _swap(new: Path, final: Path) -> None:
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
    delete_tree(aside)


def _exchange(one: Path, other: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        call = ctypes.CDLL(None, use_errno=True).renameat2
        paths = os.fsencode(one), os.fsencode(other)
        return bool(call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
    return False
