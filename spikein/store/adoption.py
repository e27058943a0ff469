"""Artifacts that were built from the same content in the same way, although by another recipe.

A recipe names its inputs by their recipes, so that it is known before anything is built. Where an
input's recipe is new and the part of it that is read is the same as before, the artifact need not
be built again: one with the same content key has its files.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from inject.digest import digest
from inject.step import Recipe
from spikein.store.artifact import Artifact, open_artifact, verified
from spikein.store.listing import Listed
from spikein.store.manifest import StoreError, read_manifest


class ContentIndex:
    """Finds artifacts by what they were built from; each manifest is read once."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, int], tuple[str | None, str] | None] = {}
        """By folder and inode: the content key, None where what was read is not recorded; and the
        digest of the identity without the digests of the inputs."""

    def equal(self, folders: Iterable[Listed], content_key: str) -> Artifact | None:
        """Return an intact artifact with this content key, or None."""
        for folder, key, _ in self._known(folders):
            if key == content_key:
                try:
                    found = verified(open_artifact(folder))
                except StoreError:
                    continue
                # Another process may have built it again meanwhile.
                if found.manifest.content_key == content_key:
                    return found
        return None

    def could_reuse(self, folders: Iterable[Listed], recipe: Recipe) -> bool:
        """Return whether one differs from the recipe in nothing but its inputs."""
        wanted = _without_inputs(recipe.identity())
        return any(rest == wanted and key is not None for _, key, rest in self._known(folders))

    def _known(self, folders: Iterable[Listed]) -> Iterator[tuple[Path, str | None, str]]:
        for listed in folders:
            place = str(listed.path), listed.inode
            if place not in self._keys:
                try:
                    manifest = read_manifest(listed.path)
                    rest = _without_inputs(dict(manifest.identity))
                    self._keys[place] = manifest.content_key, rest
                except StoreError:
                    self._keys[place] = None
            keys = self._keys[place]
            if keys is not None:
                yield listed.path, *keys


def link_files(source: Artifact, folder: Path) -> None:
    """Put the files of an artifact into a folder: hard links where the disk can, else copies."""
    for name in source.manifest.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / name, target)
        except OSError:
            shutil.copyfile(source / name, target)


def _without_inputs(identity: dict[str, object]) -> str:
    inputs = identity.get("inputs")
    return digest({**identity, "inputs": sorted(inputs) if isinstance(inputs, dict) else []})
