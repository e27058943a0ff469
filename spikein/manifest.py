"""What an artifact is (`Recipe`) and what its `manifest.json` says (`Manifest`).

A recipe's digest is the artifact's identity: kind, version of the step, settings, inputs by
their digests, the code that makes it, and the libraries that bear on the content. Where and how
it ran never enters. The manifest adds what came out: every file with its SHA-256 and size, and
one content digest.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Any, NamedTuple

from inject.digest import digest, file_digest
from inject.errors import InputError

MANIFEST = "manifest.json"
FORMAT = 1
SHORT = 12


class StoreError(InputError):
    """The store cannot give or take an artifact; says which file and what to do."""


class FileRecord(NamedTuple):
    """One file of an artifact."""

    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What bears on an artifact's content, and nothing else."""

    kind: str
    version: int
    """Raised when the step's code changes what it writes."""
    settings: Mapping[str, Any]
    """Plain JSON values; anything else raises `TypeError` when the digest is taken."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Input name to the digest of its recipe."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Distribution name to version."""
    code: str = ""
    """Digest of the code that decides the content (`inject.source_digest`)."""

    def identity(self) -> dict[str, Any]:
        """Return what is hashed."""
        return {
            "kind": self.kind,
            "version": self.version,
            "settings": dict(self.settings),
            "inputs": dict(self.inputs),
            "libraries": dict(self.libraries),
            "code": self.code,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the identity."""
        return digest(self.identity())


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of `manifest.json`."""

    kind: str
    label: str
    digest: str
    identity: Mapping[str, Any]
    inputs: Mapping[str, str]
    files: Mapping[str, FileRecord]
    """Relative path with `/` to its record."""
    volatile: tuple[str, ...]
    """Patterns of files that differ from build to build (times, logs)."""
    content: str
    """Digest over the files that are not volatile."""
    seconds: float
    """How long the build took."""
    created: str
    """UTC, ISO 8601, whole seconds."""
    libraries: Mapping[str, str]
    protected: bool
    """The artifact holds texts that must not be shared."""

    def to_json(self) -> str:
        """Return the text of `manifest.json`."""
        values = {"format": FORMAT, **{name: getattr(self, name) for name in _FIELDS}}
        values["files"] = {name: record._asdict() for name, record in self.files.items()}
        return json.dumps(values, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


_FIELDS = tuple(Manifest.__dataclass_fields__)


def read_manifest(folder: Path) -> Manifest:
    """Read and check `manifest.json` of an artifact.

    Raises:
        StoreError: when it is missing, unreadable, of another format, or disagrees with itself.
    """
    path = folder / MANIFEST
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values.pop("format") != FORMAT:
            raise StoreError("another format of manifest", where=str(path), hint=DAMAGE_HINT)
        values["files"] = {name: FileRecord(**record) for name, record in values["files"].items()}
        values["volatile"] = tuple(values["volatile"])
        manifest = Manifest(**values)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        said = "is missing" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise StoreError(said, where=str(path), hint=DAMAGE_HINT) from None
    if digest(manifest.identity) != manifest.digest:
        raise StoreError(
            "the digest is not that of the identity", where=str(path), hint=DAMAGE_HINT
        )
    return manifest


DAMAGE_HINT = "Remove it with `spikein gc --damaged`, then run again: it will be rebuilt."


def library_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each installed distribution, without a local part such as `+cpu`.

    Raises:
        InputError: when one is not installed.
    """
    found = {}
    for name in names:
        try:
            found[name] = distribution_version(name).partition("+")[0]
        except PackageNotFoundError:
            raise InputError(
                f"the library {name} is not installed", hint=f"Install it: pip install {name}"
            ) from None
    return found


def file_records(folder: Path) -> dict[str, FileRecord]:
    """Hash every file below `folder` but the manifest; sorted by relative path.

    Raises:
        StoreError: for a link or a device, which could point outside the artifact.
    """
    records = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise StoreError("an artifact holds plain files only", where=str(path))
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != MANIFEST:
            records[name] = FileRecord(file_digest(path), path.stat().st_size)
    return records


def content_digest(files: Mapping[str, FileRecord], volatile: Iterable[str]) -> str:
    """Return the digest over names and hashes of the files that are not volatile."""
    patterns = tuple(volatile)
    return digest(
        {
            name: record.sha256
            for name, record in files.items()
            if not any(fnmatchcase(name, pattern) for pattern in patterns)
        }
    )
