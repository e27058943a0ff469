"""One finished artifact, and how it is opened: by a look at its folder, and verified to be read.

Whoever reads what an artifact holds asks for `verified`: steps get their inputs so, and so do the
commands that read a finished run.
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
    """Open an artifact by its folder; its manifest is checked, and its files by a look at them.

    Whoever reads what they hold asks for `verified` as well.

    Raises:
        StoreError: when it is damaged, naming the file.
    """
    manifest = read_manifest(folder)
    require_structure(folder, manifest)
    return Artifact(path=folder, manifest=manifest)


def verified(artifact: Artifact, files: Iterable[str] = ("*",)) -> Artifact:
    """Return an artifact whose files hold what was built, as a look and their hashes tell.

    Everybody who reads an artifact goes through here; within one process a file is hashed once.

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
    """Compare what an artifact was made of with what its inputs hold.

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
