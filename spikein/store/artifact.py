"""One finished artifact, and how it is opened: its manifest and listing checked, then verified.

Code that reads the files of an artifact calls `verified` first: so do the steps for their inputs,
and the commands for the artifacts of a finished run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spikein.store.manifest import DAMAGE_HINT, Manifest, StoreError, read_manifest
from spikein.store.verification import require_content, require_structure


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

    Call `verified` before reading what the files hold.

    Raises:
        StoreError: when it is damaged, naming the file.
    """
    manifest = read_manifest(folder)
    require_structure(folder, manifest)
    return Artifact(path=folder, manifest=manifest)


def verified(artifact: Artifact, files: Iterable[str] = ("*",)) -> Artifact:
    """Return an artifact after checking that its files hold what was built.

    Every reading of an artifact comes after this; within one process a file is hashed once.

    Args:
        artifact: an open artifact.
        files: patterns of the files that will be read.

    Raises:
        StoreError: when it is damaged, naming the file.
    """
    require_structure(artifact.path, artifact.manifest)
    require_content(artifact.path, artifact.manifest, files)
    return artifact


def require_current(artifact: Artifact, inputs: Mapping[str, Manifest]) -> None:
    """Check that the inputs of an artifact still hold what it was built from.

    Raises:
        StoreError: naming the input whose content is no longer that.
    """
    name = artifact.manifest.stale_input(inputs)
    if name is not None:
        raise StoreError(
            f"was made of content that its input {name} no longer has",
            where=str(artifact.path),
            hint=DAMAGE_HINT,
        )
