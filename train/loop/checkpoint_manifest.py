"""The manifest of a checkpoint folder: size and digest of each of its files, written last.

A folder without a manifest was never finished. One whose manifest or files are not what was
written (cut off, a byte changed, emptied, missing, added, replaced by a link) is damaged and says
which file and how; nothing of it is used. Every file is flushed to disk before the manifest is.

The digest is xxh3 of 128 bits: it finds damage, and whoever could forge files here could as well
forge the manifest. Cost: one reading of what was just written, at memory speed, and the disk's
own time to flush it (`python -m scripts.bench.checkpoints`).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from inject.digest import canonical
from inject.files import fsync, write_text

MANIFEST = "spikein.json"
_BLOCK = 1 << 20


class DamagedCheckpoint(Exception):
    """A folder is not what was written; the message names the file and the damage."""


def flush(folder: Path) -> None:
    """Flush all files and folders below a folder, and the folder's own entry."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            fsync(path)
    fsync(folder)
    fsync(folder.parent)


def seal(folder: Path, facts: Mapping[str, Any]) -> None:
    """Flush a folder and write its manifest; nothing may write to it any more.

    Args:
        folder: whole but for the manifest.
        facts: kept in the manifest, as plain JSON values.
    """
    flush(folder)
    body = {
        "facts": dict(facts),
        "files": {
            str(path.relative_to(folder)): [path.stat().st_size, _digest(path)]
            for path in _files(folder)
        },
    }
    write_text(folder / MANIFEST, json.dumps({**body, "digest": _own(body)}, indent=1))


def read_facts(folder: Path) -> dict[str, Any]:
    """Return what a folder's manifest says, without looking at the files.

    Raises:
        DamagedCheckpoint: there is no manifest, or it is not what was written.
    """
    path = folder / MANIFEST
    if folder.is_symlink() or path.is_symlink():
        raise DamagedCheckpoint("a link stands in its place")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        own = found.pop("digest")
        whole = own == _own(found)
    except FileNotFoundError:
        raise DamagedCheckpoint(
            f"it has no {MANIFEST}: the run ended while it was written, or the file is gone"
        ) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedCheckpoint(f"{MANIFEST} cannot be read: {error}") from None
    if not whole:
        raise DamagedCheckpoint(f"{MANIFEST} was changed after it was written")
    facts: dict[str, Any] = found["facts"]
    return facts


def verify(folder: Path) -> None:
    """Check every file of a folder against its manifest.

    Raises:
        DamagedCheckpoint: names the first file that is not what was written.
    """
    read_facts(folder)
    expected = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    for name, (size, digest) in expected.items():
        path = folder / name
        try:
            if path.is_symlink():
                raise DamagedCheckpoint(f"{name} is a link")
            found = path.stat().st_size
            if found != size:
                raise DamagedCheckpoint(f"{name} has {found:,} bytes, and {size:,} were written")
            if _digest(path) != digest:
                raise DamagedCheckpoint(f"the content of {name} was changed after it was written")
        except FileNotFoundError:
            raise DamagedCheckpoint(f"{name} is missing") from None
        except OSError as error:
            raise DamagedCheckpoint(f"{name} cannot be read: {error.strerror or error}") from None
    # A file too many could be taken for one of ours: the libraries look for names.
    for path in _files(folder):
        name = str(path.relative_to(folder))
        if name not in expected and not path.name.startswith("."):
            raise DamagedCheckpoint(f"{name} was added after it was written")


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if (path.is_file() or path.is_symlink()) and path != folder / MANIFEST
    )


def _digest(path: Path) -> str:
    state = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            state.update(block)
    return state.hexdigest()


def _own(body: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(canonical(body).encode())
