"""The artifacts of a store, found by the names of their folders or by their inputs.

A folder is `<root>/<kind>/<label>-<digest12>/`. Listings are read once per call, without opening
the artifacts: with hundreds of artifacts of one kind, opening each for each step costs more than
the steps of a small study.

A recipe names its inputs by their recipes, so that it is known before anything is built. If an
input's recipe is new but the part that is read is the same as before, the artifact need not be
built again: an artifact with the same content key has the same files.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from inject.digest import digest
from inject.files import link_or_copy
from inject.step import Recipe
from spikein.store.artifact import Artifact, open_artifact, verified
from spikein.store.manifest import SHORT, StoreError, read_manifest

ANY = "*"
_ARTIFACT_NAME = re.compile(rf".+-[0-9a-f]{{{SHORT}}}")


Listed = tuple[Path, int]
"""The folder of an artifact, finished or damaged, and its inode, which differs after a rebuild."""


def artifact_folders(root: Path, kind: str = ANY, short: str = ANY) -> Iterator[Listed]:
    """Yield the folders of artifacts in the order of their names.

    Args:
        root: the store's.
        kind: of the artifacts; `*` for all of them.
        short: the first 12 digits of the digest; `*` for all of them.
    """
    kinds = [kind] if kind != ANY else sorted(entry.name for entry in _entries(root))
    for kind_folder in kinds:
        if kind_folder.startswith("."):
            continue
        folder = root / kind_folder
        ending = "" if short == ANY else f"-{short}"
        folders = [
            (entry.name, entry.inode())
            for entry in _entries(folder)
            if entry.name.endswith(ending)
            and not entry.name.startswith(".")
            and _ARTIFACT_NAME.fullmatch(entry.name)
        ]
        for name, inode in sorted(folders):
            yield folder / name, inode


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; nothing if it is not a folder."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


class ContentIndex:
    """Find artifacts by their inputs; each manifest is read once."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, int], tuple[str | None, str] | None] = {}
        """By folder and inode: the content key, None if what was read is not recorded; and the
        digest of the identity without the digests of the inputs."""

    def equal(self, folders: Iterable[Listed], content_key: str) -> Artifact | None:
        """Return an intact artifact with this content key, or None."""
        for folder, key, _ in self._read_keys(folders):
            if key == content_key:
                try:
                    artifact = verified(open_artifact(folder))
                except StoreError:
                    continue
                # Another process may have built it again meanwhile.
                if artifact.manifest.content_key == content_key:
                    return artifact
        return None

    def could_reuse(self, folders: Iterable[Listed], recipe: Recipe) -> bool:
        """Return whether an artifact differs from the recipe only in its inputs."""
        own_identity = _without_inputs(recipe.identity())
        return any(
            identity == own_identity and key is not None
            for _, key, identity in self._read_keys(folders)
        )

    def _read_keys(self, folders: Iterable[Listed]) -> Iterator[tuple[Path, str | None, str]]:
        for folder, inode in folders:
            place = str(folder), inode
            if place not in self._keys:
                try:
                    manifest = read_manifest(folder)
                    identity = _without_inputs(dict(manifest.identity))
                    self._keys[place] = manifest.content_key, identity
                except StoreError:
                    self._keys[place] = None
            keys = self._keys[place]
            if keys is not None:
                yield folder, *keys


def link_files(source: Artifact, folder: Path) -> None:
    """Put the files of an artifact into a folder: hard links if possible, else copies."""
    for name in source.manifest.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(source / name, target)


def _without_inputs(identity: dict[str, object]) -> str:
    inputs = identity.get("inputs")
    return digest({**identity, "inputs": sorted(inputs) if isinstance(inputs, dict) else []})
