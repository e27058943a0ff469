"""What a run folder rests on, and whether it is all there."""

from pathlib import Path
from typing import NamedTuple

from inject.errors import InputError
from spikein.runs.folder import finish_time, linked_artifacts, run_folders, run_name
from spikein.runs.record import checked_record
from spikein.store.artifact import open_artifact, verified
from spikein.store.manifest import StoreError


class RunRow(NamedTuple):
    """One run folder."""

    name: str
    finished: str
    """When its last step was built, UTC, to the second."""
    linked: int
    """Artifacts that it rests on."""
    whole: int
    """How many of them are there, undamaged to a quick look."""
    problem: str | None


class ArtifactRow(NamedTuple):
    """One artifact that a run rests on."""

    name: str
    size: int
    """Bytes."""
    created: str
    problem: str | None


def run_rows(runs_root: Path) -> list[RunRow]:
    """Return one row for each run folder, by name and number; one that cannot be read says why."""
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
    """Return what is wrong with a run's own files; None for nothing."""
    try:
        checked_record(run_folder)
    except InputError as error:
        return error.problem
    return None


def artifact_rows(
    run_folder: Path, store: Path | None = None, *, read: bool = False
) -> list[ArtifactRow]:
    """Return one row for each artifact that a run rests on, damaged ones included.

    Args:
        run_folder: the run's folder.
        store: the store's folder; None for the one that the run remembers.
        read: read the artifacts' files as well, as a run does; else a look at them must do.
    """
    rows = []
    for folder in linked_artifacts(run_folder, store):
        name = f"{folder.parent.name}/{folder.name}"
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
