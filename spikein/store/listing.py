"""The folders of a store's artifacts, found by their names: `<root>/<kind>/<label>-<digest12>/`.

A folder is read once a call, without a look at what it holds: with hundreds of artifacts of one
kind, a look at each for each step costs more than the steps of a small study.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spikein.store.manifest import SHORT

ANY = "*"
_ARTIFACT_NAME = re.compile(rf".+-[0-9a-f]{{{SHORT}}}")


class Listed(NamedTuple):
    """The folder of an artifact, finished or damaged."""

    path: Path
    inode: int
    """Another one where an artifact was built again."""


def artifact_folders(root: Path, kind: str = ANY, short: str = ANY) -> Iterator[Listed]:
    """Yield the folders of artifacts in the order of their names.

    Args:
        root: the store's.
        kind: of the artifacts; `*` for all of them.
        short: the first 12 digits of the digest; `*` for all of them.
    """
    kinds = [kind] if kind != ANY else sorted(entry.name for entry in _entries(root))
    for one in kinds:
        if one.startswith("."):
            continue
        folder = root / one
        ending = "" if short == ANY else f"-{short}"
        found = [
            (entry.name, entry.inode())
            for entry in _entries(folder)
            if entry.name.endswith(ending)
            and not entry.name.startswith(".")
            and _ARTIFACT_NAME.fullmatch(entry.name)
        ]
        for name, inode in sorted(found):
            yield Listed(folder / name, inode)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what a folder holds; nothing where it is no folder."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
