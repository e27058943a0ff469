"""Verified files: content is reused only if its digest, written with it, still agrees.

A folder (a restart checkpoint, a first stage's model, a chunk of tokens, counted frequencies) has a
manifest with size and digest of each of its files, written last; a value (answers of a model) is in
a file with its digest. A folder without a manifest was never finished. A folder or value that
differs from what was written (cut off, a byte changed, emptied, missing, added, replaced by a link)
is damaged: the error names the file and the damage, and nothing of it is used. Every file is
flushed to disk before the manifest is.

The digest is xxh3 of 128 bits: it finds damage, not forgery: a forger of files could also forge the
manifest. Cost: one reading of the new files, at memory speed, and the disk's own time to flush it
(`python -m scripts.bench.checkpoints`).
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import xxhash

from inject.digest import canonical
from inject.files import fsync, write_text

MANIFEST = "spikein.json"
_BLOCK = 1 << 20
_log = logging.getLogger(__name__)


class IntegrityError(Exception):
    """Content differs from what was written; the message names the file and the damage."""


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
    names = [str(path.relative_to(folder)) for path in _files(folder)]
    write_sealed(folder / MANIFEST, {"facts": dict(facts), "files": file_digests(folder, names)})


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the facts in a folder's manifest, without reading the files.

    Raises:
        Damaged: no manifest, or one that differs from what was written.
    """
    return _manifest(folder)["facts"]


def verify(folder: Path) -> dict[str, Any]:
    """Check every file of a folder against its manifest; return its facts.

    Raises:
        Damaged: names the first damaged file.
    """
    manifest = _manifest(folder)
    facts: dict[str, Any] = manifest["facts"]
    expected = manifest["files"]
    require_files(folder, expected)
    # A file too many could be taken for one of ours: the libraries look for names.
    for path in _files(folder):
        name = str(path.relative_to(folder))
        if name not in expected and not path.name.startswith("."):
            raise IntegrityError(f"{name} was added after it was written")
    return facts


def verified_facts(folder: Path) -> dict[str, Any] | None:
    """Return the facts of an undamaged folder, else None; damage is logged."""
    try:
        return verify(folder)
    except IntegrityError as damage:
        if (folder / MANIFEST).exists():
            _log.warning("%s is damaged (%s), and is made again.", folder, damage)
        return None


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write plain JSON values under their names into a file, with their digest."""
    write_text(path, json.dumps({**value, "digest": checksum(value)}, indent=1))


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the value that `write_sealed` wrote.

    Raises:
        FileNotFoundError: no such file.
        Damaged: the value differs from what was written.
    """
    if path.is_symlink():
        raise IntegrityError("replaced by a link")
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        own = value.pop("digest")
        same = own == checksum(value)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(f"{path.name} cannot be read: {error}") from None
    if not same:
        raise IntegrityError(f"{path.name} was changed after it was written")
    return value


def cached_value(path: Path, make: Callable[[], Any]) -> Any:
    """Return the value of a sealed file; make and write it if the file is missing or damaged.

    Args:
        path: the file.
        make: returns plain JSON values.
    """
    try:
        return read_sealed(path)["value"]
    except FileNotFoundError:
        pass
    except IntegrityError as damage:
        _log.warning("%s is damaged (%s), and is made again.", path, damage)
    value = make()
    write_sealed(path, {"value": value})
    return value


def checksum(value: Any) -> str:
    """Return the digest of plain JSON values that is written with them."""
    return xxhash.xxh3_128_hexdigest(canonical(value).encode())


def quick_digest(path: Path) -> str:
    """Return the XXH3 (128 bits, hex) of a file's content."""
    state = xxhash.xxh3_128()
    buffer = bytearray(_BLOCK)
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            state.update(view[:count])
    return state.hexdigest()


def file_digests(folder: Path, names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return size and digest of files of a folder, by their names."""
    return {name: ((folder / name).stat().st_size, quick_digest(folder / name)) for name in names}


def require_files(folder: Path, expected: Mapping[str, tuple[int, str]]) -> None:
    """Check files of a folder against `file_digests`; the folder may have others.

    Raises:
        Damaged: names the first damaged file.
    """
    for name, (size, digest) in expected.items():
        path = folder / name
        try:
            if path.is_symlink():
                raise IntegrityError(f"{name} is a link")
            n_bytes = path.stat().st_size
            if n_bytes != size:
                raise IntegrityError(f"{name} has {n_bytes:,} bytes, and {size:,} were written")
            if quick_digest(path) != digest:
                raise IntegrityError(f"the content of {name} was changed after it was written")
        except FileNotFoundError:
            raise IntegrityError(f"{name} is missing") from None
        except OSError as error:
            raise IntegrityError(f"{name} cannot be read: {error.strerror or error}") from None


def _manifest(folder: Path) -> dict[str, Any]:
    if folder.is_symlink():
        raise IntegrityError("replaced by a link")
    try:
        return read_sealed(folder / MANIFEST)
    except FileNotFoundError:
        raise IntegrityError(
            f"it has no {MANIFEST}: the run ended while it was written, or the file is gone"
        ) from None


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if (path.is_file() or path.is_symlink()) and path != folder / MANIFEST
    )
