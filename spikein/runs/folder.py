"""Run folders, `runs/NAME/N/`: find them, and check their artifacts.

A run folder is complete or absent, and never changes (`spikein.runs.publication`). Its links to
artifacts are relative, so that a folder with both `runs/` and `store/` can be moved as one. No link
leads to an artifact with protected texts, since an archive that follows links would include them.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from inject.errors import InputError, unknown_name
from spikein.runs.record import (
    EXPERIMENT,
    RECORD,
    checked_record,
    read_record,
    resolve_places,
)
from spikein.store.artifact import Artifact, open_artifact, verified
from spikein.store.manifest import SHORT, StoreError
from spikein.store.store import short_digest

ARTIFACTS = "artifacts"
LATEST = "latest"
"""The link among the runs of one name that leads to the newest."""
LINKED = ".linked"
"""The artifacts of a run folder that is being filled, one per line; replaced by the record."""


def check_home(home: Path) -> None:
    """Check that runs may be published in the folder of their name.

    Raises:
        InputError: for a path of that name that is not from spikein, or from an earlier version.
    """
    if is_run(home):
        raise InputError(
            "contains a run of an earlier version of spikein, which kept one run per name",
            where=str(home),
            hint=f"Move it away, and it stays as it is: mv {home} {home}-before",
        )
    if not home.exists() and not home.is_symlink():
        return
    visible = {path.name for path in home.glob("[!.]*")}
    if not numbered(home) and not (home.is_dir() and visible <= {LATEST}):
        raise InputError(
            "exists but was not written by spikein, so nothing is put into it",
            where=str(home),
            hint="Give the experiment another name, or give another --runs folder.",
        )


def link_artifact(run_folder: Path, artifact: Artifact) -> None:
    """Add an artifact to a hidden run folder; link to it unless it contains protected texts."""
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
    """Return the artifact folders of a run, including missing ones.

    Args:
        run_folder: the run's folder at its present place.
        store: the store's folder; None for the recorded one.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(run_folder)
    store_folder = resolve_places(run_folder, record)[0]
    root = store or store_folder or Path(record.store.absolute if record.store else "")
    return [root / name for name in record.artifacts]


class RunArtifacts:
    """The artifacts of a run; the error for a damaged one names the command that rebuilds it."""

    def __init__(self, run_folder: Path, store: Path | None = None) -> None:
        self._folder = run_folder
        self._paths = {short_digest(path): path for path in linked_artifacts(run_folder, store)}
        self.verified: set[str] = set()
        """The names of the artifacts returned by `get`."""

    def of_kind(self, kind: str) -> list[Artifact]:
        """Return the artifacts of a kind; the contents of their files are not verified."""
        with self.rebuild_hint():
            paths = [path for path in self._paths.values() if path.parent.name == kind]
            return [open_artifact(path) for path in paths]

    def get(self, digest: str, role: str, files: Sequence[str] = ("*",)) -> Artifact:
        """Return an artifact by its digest, verified.

        Raises:
            InputError: for a missing or damaged artifact.
        """
        with self.rebuild_hint():
            if digest[:SHORT] not in self._paths:
                problem = f"the run does not link to its {role} {digest[:SHORT]}"
                raise StoreError(problem, where=str(self._folder))
            artifact = verified(open_artifact(self._paths[digest[:SHORT]]), files)
        self.verified.add(artifact_name(artifact.path))
        return artifact

    @contextmanager
    def rebuild_hint(self) -> Iterator[None]:
        """Turn errors of the store into errors that name the command that rebuilds."""
        try:
            yield
        except StoreError as error:
            hint = f"Run it again: spikein run {self._folder / EXPERIMENT}"
            raise InputError(error.problem, where=error.where, hint=hint) from None


def folders_by_name(runs_root: Path) -> list[Path]:
    """Return the folders with the runs of one name each, by name."""
    if not runs_root.is_dir():
        return []
    return [home for home in sorted(runs_root.iterdir()) if is_run(home) or numbered(home)]


def numbered(home: Path) -> list[Path]:
    """Return the runs of one name, the oldest first."""
    if not home.is_dir():
        return []
    folders = [folder for folder in home.iterdir() if folder.name.isdecimal() and is_run(folder)]
    return sorted(folders, key=lambda folder: int(folder.name))


def run_folders(runs_root: Path) -> list[Path]:
    """Return all run folders, by name and number; those of earlier versions by name."""
    return [
        run
        for home in folders_by_name(runs_root)
        for run in ([home] if is_run(home) else numbered(home))
    ]


def run_name(folder: Path) -> str:
    """Return a run's name: `NAME/N`; `NAME` if an earlier version wrote it."""
    return f"{folder.parent.name}/{folder.name}" if folder.name.isdecimal() else folder.name


def numbered_run(folder: Path) -> Path:
    """Return the run's folder behind `latest`; any other folder unchanged."""
    if folder.name == LATEST and folder.is_symlink():
        return folder.parent / os.readlink(folder)
    return folder


def find_run(runs_root: Path, name: str) -> Path:
    """Return a run folder by its name below `runs_root` or by its path: `NAME/N`, or `NAME`.

    A name without a number means its newest run.

    Raises:
        InputError: for an unknown run, with the existing ones.
    """
    for folder in (runs_root / name, Path(name)):
        folder = numbered_run(folder)
        if is_run(folder):
            return folder
        if runs := numbered(folder):
            return runs[-1]
    names = [home.name for home in folders_by_name(runs_root)]
    raise unknown_name(
        f"no run is called {name!r}",
        name,
        names,
        where=str(runs_root),
        hint=None if names else "There are no runs yet; start with `spikein run FILE`.",
    )


def is_run(folder: Path) -> bool:
    """Return whether a folder was published by `publish_run` and is visible."""
    return not folder.name.startswith(".") and (folder / RECORD).is_file()


def finish_time(folder: Path) -> datetime:
    """Return the time when a run's last step was built, in UTC.

    Raises:
        InputError: when its record cannot be read.
    """
    return datetime.fromisoformat(read_record(folder).finished)


def artifact_name(artifact: Path) -> str:
    """Return the name of an artifact in a record: `kind/label-digest12`."""
    return f"{artifact.parent.name}/{artifact.name}"


class RunRow(NamedTuple):
    """One run folder."""

    name: str
    finished: str
    """When its last step was built, UTC, to the second."""
    linked: int
    """Number of its artifacts."""
    whole: int
    """Number of them that exist and pass a quick check."""
    problem: str | None


class ArtifactRow(NamedTuple):
    """One artifact of a run."""

    name: str
    size: int
    """Bytes."""
    created: str
    problem: str | None


def run_rows(runs_root: Path) -> list[RunRow]:
    """Return one row per run folder, by name and number, with the reason if it cannot be read."""
    rows = []
    for folder in run_folders(runs_root):
        try:
            rows.append(_row(folder))
        except InputError as error:
            rows.append(RunRow(run_name(folder), "", 0, 0, str(error)))
    return rows


def _row(folder: Path) -> RunRow:
    artifacts = artifact_rows(folder)
    problems = [row.problem for row in artifacts if row.problem]
    return RunRow(
        name=run_name(folder),
        finished=f"{finish_time(folder):%Y-%m-%d %H:%M:%S}",
        linked=len(artifacts),
        whole=len(artifacts) - len(problems),
        problem=problems[0] if problems else folder_problem(folder),
    )


def folder_problem(run_folder: Path) -> str | None:
    """Return the problem of a run's own files, or None."""
    try:
        checked_record(run_folder)
    except InputError as error:
        return error.problem
    return None


def artifact_rows(
    run_folder: Path, store: Path | None = None, *, read: bool = False
) -> list[ArtifactRow]:
    """Return one row per artifact of a run, including damaged ones.

    Args:
        run_folder: the run's folder.
        store: the store's folder; None for the recorded one.
        read: read the artifacts' files as well, as a run does; else only list them.
    """
    rows = []
    for folder in linked_artifacts(run_folder, store):
        name = artifact_name(folder)
        if not folder.is_dir():
            rows.append(ArtifactRow(name, 0, "", "missing in the store; run again to build it"))
            continue
        try:
            artifact = open_artifact(folder)
            manifest = (verified(artifact) if read else artifact).manifest
        except StoreError as error:
            rows.append(ArtifactRow(name, 0, "", str(error)))
            continue
        size = sum(record.size for record in manifest.files.values())
        created = manifest.created.replace("T", " ").removesuffix("+00:00")
        rows.append(ArtifactRow(name, size, created, None))
    return rows
