"""Run folders, `runs/<name>/`: finding them, and the artifacts that they rest on.

A run folder is whole or absent (`spikein.runs.replacement` makes it). Its links to artifacts are
relative, so that a folder holding both `runs/` and `store/` can be moved as one; no link leads to
an artifact with protected texts, since an archive that follows links would hold them.
"""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from inject.errors import InputError, did_you_mean
from spikein.runs.history import ARTIFACTS, earlier_results
from spikein.runs.record import read_record, resolve_places
from spikein.store.artifact import Artifact

MARK = ".spikein-run"
"""An empty file in every run folder, which says that spikein made it."""
LINKED = ".linked"
"""The artifacts of a run folder that is being filled, a line each; replaced by the record."""


def check_replaceable(folder: Path) -> None:
    """Check that a run may take the place of whatever stands at its path.

    Raises:
        InputError: when something of that name was not made by spikein.
    """
    if (folder.exists() or folder.is_symlink()) and not (folder / MARK).is_file():
        raise InputError(
            "exists and was not made by spikein, so it is not replaced",
            where=str(folder),
            hint="Give the experiment another name, or give another --runs folder.",
        )


def link_artifact(run_folder: Path, artifact: Artifact) -> None:
    """Make a hidden run folder rest on an artifact; link to it unless it holds protected texts."""
    name = f"{artifact.manifest.kind}/{artifact.path.name}"
    path = artifact.path.resolve()
    with (run_folder / LINKED).open("a", encoding="utf-8") as file:
        line = [name, artifact.manifest.protected, os.fsdecode(path.parent.parent)]
        file.write(json.dumps(line) + "\n")
    link = run_folder / ARTIFACTS / name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not artifact.manifest.protected and not link.is_symlink():
        link.symlink_to(os.path.relpath(path, link.parent.resolve()))


def linked_artifacts(run_folder: Path, store: Path | None = None) -> list[Path]:
    """Return the artifact folders that a run rests on, missing ones included.

    Args:
        run_folder: the run's folder, wherever it lies now.
        store: the store's folder; None for the one that the run remembers.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(run_folder)
    if record is None:
        links = list(artifact_links(run_folder))
        return links if store is None else [store / artifact_name(link) for link in links]
    root = store or store_of(run_folder) or Path(record.store.absolute if record.store else "")
    return [root / name for name in record.artifacts]


def store_of(run_folder: Path) -> Path | None:
    """Return the store that a run remembers; None where it is not found.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(run_folder)
    if record is not None:
        return resolve_places(run_folder, record)[0]
    return next((link.parent.parent for link in artifact_links(run_folder)), None)


def start_folder(run_folder: Path) -> Path:
    """Return the folder where the relative paths of a run's experiment start.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(run_folder)
    return Path.cwd() if record is None else resolve_places(run_folder, record)[1]


def referenced_artifacts(run_folder: Path, *, damaged: bool = False) -> set[str]:
    """Return the names (`kind/label-digest12`) of the artifacts of a run and its earlier results.

    Args:
        run_folder: the run's folder.
        damaged: skip earlier results whose record cannot be read.

    Raises:
        InputError: when a record cannot be read.
    """
    record = read_record(run_folder)
    found = set(record.artifacts) if record else set()
    found |= {artifact_name(link) for link in artifact_links(run_folder)}
    for _, earlier in earlier_results(run_folder, damaged=damaged):
        found |= set(earlier.artifacts)
    return found


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


def is_run(folder: Path) -> bool:
    """Return whether a folder was made by `publish_run` and is visible."""
    return not folder.name.startswith(".") and (folder / MARK).is_file()


def finish_time(folder: Path) -> datetime:
    """Return when a run's last step was built, in UTC.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(folder)
    if record is not None:
        return datetime.fromisoformat(record.finished)
    return datetime.fromtimestamp((folder / MARK).stat().st_mtime, UTC)


def artifact_links(run_folder: Path) -> Iterator[Path]:
    """Yield the artifact folders that the links of a run folder lead to, dangling ones included."""
    for link in sorted((run_folder / ARTIFACTS).glob("*/*")):
        if link.is_symlink():
            yield Path(os.path.normpath(link.parent.resolve() / os.readlink(link)))


def artifact_name(artifact: Path) -> str:
    """Return how a record names an artifact: `kind/label-digest12`."""
    return f"{artifact.parent.name}/{artifact.name}"
