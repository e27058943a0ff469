"""What a run folder rests on, and whether it is all there."""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from spikein.artifact import open_artifact, verified
from spikein.manifest import StoreError
from spikein.runs import linked_artifacts, mark_of, run_folders


class RunRow(NamedTuple):
    """One run folder."""

    name: str
    finished: str
    """UTC time of its publication, to the second."""
    linked: int
    """Artifacts that it links to."""
    whole: int
    """How many of them are there, undamaged to a quick look."""
    problem: str | None


class ArtifactRow(NamedTuple):
    """One artifact that a run folder links to."""

    name: str
    size: int
    """Bytes."""
    created: str
    problem: str | None


def run_rows(runs_root: Path) -> list[RunRow]:
    """Return one row for each run folder, by name."""
    rows = []
    for folder in run_folders(runs_root):
        artifacts = artifact_rows(folder)
        problems = [row.problem for row in artifacts if row.problem]
        finished = datetime.fromtimestamp(mark_of(folder).stat().st_mtime, UTC)
        rows.append(
            RunRow(
                name=folder.name,
                finished=f"{finished:%Y-%m-%d %H:%M:%S}",
                linked=len(artifacts),
                whole=len(artifacts) - len(problems),
                problem=problems[0] if problems else None,
            )
        )
    return rows


def artifact_rows(run_folder: Path, *, read: bool = False) -> list[ArtifactRow]:
    """Return one row for each artifact that a run folder links to, damaged ones included.

    Args:
        run_folder: the run.
        read: read the artifacts' files as well, as a run does; else a look at them must do.
    """
    rows = []
    for folder in linked_artifacts(run_folder):
        name = f"{folder.parent.name}/{folder.name}"
        if not folder.is_dir():
            rows.append(ArtifactRow(name, 0, "", "gone from the store; run again to rebuild it"))
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
