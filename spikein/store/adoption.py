"""Artifacts that were built from the same content in the same way, although by another recipe.

A recipe names its inputs by their recipes, so that it is known before anything is built. Where an
input's recipe is new and the part of it that is read is the same as before, the artifact need not
be built again: one with the same content key has its files.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from inject.digest import digest
from inject.step import Recipe
from spikein.store.artifact import Artifact, open_artifact, verified
from spikein.store.listing import Listed
from spikein.store.manifest import Manifest, StoreError, read_manifest


class _Keys(NamedTuple):
    content: str | None
    """The content key; None where what was read is not recorded."""
    rest: str
    """Digest of the identity without the digests of the inputs."""


class ContentIndex:
    """Finds artifacts by what they were built from; each manifest is read once."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, int], _Keys | None] = {}

    def equal(self, folders: Iterable[Listed], content_key: str) -> Artifact | None:
        """Return an intact artifact with this content key, or None."""
        for folder, keys in self._known(folders):
            if keys.content == content_key:
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
        return any(
            keys.rest == wanted and keys.content is not None for _, keys in self._known(folders)
        )

    def _known(self, folders: Iterable[Listed]) -> Iterator[tuple[Path, _Keys]]:
        for listed in folders:
            place = str(listed.path), listed.inode
            if place not in self._keys:
                try:
                    self._keys[place] = _keys(read_manifest(listed.path))
                except StoreError:
                    self._keys[place] = None
            keys = self._keys[place]
            if keys is not None:
                yield listed.path, keys


def link_files(source: Artifact, folder: Path) -> None:
    """Put the files of an artifact into a folder: hard links where the disk can, else copies."""
    for name in source.manifest.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / name, target)
        except OSError:
            shutil.copyfile(source / name, target)


def _keys(manifest: Manifest) -> _Keys:
    return _Keys(manifest.content_key, _without_inputs(dict(manifest.identity)))


def _without_inputs(identity: dict[str, object]) -> str:
    inputs = identity.get("inputs")
    return digest({**identity, "inputs": sorted(inputs) if isinstance(inputs, dict) else []})
