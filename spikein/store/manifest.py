"""The content of an artifact's `manifest.json`.

It records the identity of the artifact (`inject.step.Recipe`), its output (every file with its
digests and size, one content digest, digests of named parts) and its inputs: for each the digest of
the content that the step read. It ends with a seal over itself, so that a changed byte is found as
in any other file.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from inject.digest import digest
from inject.errors import InputError
from inject.step import MANIFEST, ContentRead, InputProjection

FORMAT = 3
SHORT = 12

_BLOCK = 1 << 20


class StoreError(InputError):
    """The store cannot return or accept an artifact; names the file and the remedy."""


class FileRecord(NamedTuple):
    """One file of an artifact."""

    sha256: str
    size: int
    """Bytes."""
    xxh3: str
    """XXH3 (128 bits, hex), which is checked before each use."""


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
    """Patterns of files that differ between builds (times, logs)."""
    content: str
    """Digest over the files that are not volatile."""
    seconds: float
    """The duration of the build."""
    created: str
    """UTC, ISO 8601, whole seconds."""
    libraries: Mapping[str, str]
    protected: bool
    """The artifact contains texts that must not be shared."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The code and the kind of machine that built it."""
    input_content: Mapping[str, ContentRead] = field(default_factory=dict)
    """Input name to the part that was read."""
    content_key: str | None = None
    """See `inject.step.Recipe.content_key`."""
    facets: Mapping[str, str] = field(default_factory=dict)
    """Named parts of the content that later steps may read separately, to their digests."""
    same_as: str | None = None
    """Digest of the artifact whose files were reused, if nothing was built."""

    def read_digest(self, reading: InputProjection) -> str:
        """Return the digest of the part of this artifact that a step would read."""
        if reading.facet in self.facets:
            return self.facets[str(reading.facet)]
        if "*" in reading.files:
            return self.content
        return content_digest(matching(self.files, reading.files), self.volatile)

    def content_read(self, reading: InputProjection) -> ContentRead:
        """Return the part of this artifact that a step would read, and its digest."""
        facet = reading.facet if reading.facet in self.facets else None
        return ContentRead(self.read_digest(reading), facet, tuple(reading.files))

    def stale_input(self, inputs: Mapping[str, "Manifest"]) -> str | None:
        """Return the name of an input whose content differs from the one at build time."""
        for name, content in self.input_content.items():
            if name in inputs and inputs[name].read_digest(content.reading) != content.digest:
                return name
        return None

    def to_json(self) -> str:
        """Return the text of `manifest.json`."""
        values = {"format": FORMAT, **{name: getattr(self, name) for name in _FIELDS}}
        for name in ("files", "input_content"):
            values[name] = {key: record._asdict() for key, record in values[name].items()}
        values["seal"] = digest(values)
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
        if values.get("format") != FORMAT:
            problem = "was written by another version of spikein"
            raise StoreError(problem, where=str(path), hint=DAMAGE_HINT)
        sealed = values.pop("seal") == digest(values)
        values.pop("format")
        values["files"] = {name: FileRecord(**record) for name, record in values["files"].items()}
        values["volatile"] = tuple(values["volatile"])
        values["input_content"] = {
            name: ContentRead(**{**content, "files": tuple(content["files"])})
            for name, content in values.get("input_content", {}).items()
        }
        manifest = Manifest(**values)
        identified = digest(manifest.identity) == manifest.digest
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        problem_text = "is missing" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise StoreError(problem_text, where=str(path), hint=DAMAGE_HINT) from None
    if not identified:
        raise StoreError(
            "the digest is not that of the identity", where=str(path), hint=DAMAGE_HINT
        )
    if not sealed:
        raise StoreError("changed since it was written", where=str(path), hint=DAMAGE_HINT)
    return manifest


DAMAGE_HINT = (
    "Run the experiment again (`spikein run FILE`): damaged artifacts are rebuilt, and those built "
    "from them if their inputs differ."
)


def file_records(folder: Path) -> dict[str, FileRecord]:
    """Hash every file below `folder` except the manifest; sorted by relative path.

    Raises:
        StoreError: for a link or a device, which could point outside the artifact.
    """
    records = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise StoreError("an artifact may contain only plain files", where=str(path))
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != MANIFEST:
            records[name] = _record(path)
    return records


def _record(path: Path) -> FileRecord:
    """Return both digests and the size of a file, of one reading."""
    strong, quick, size = hashlib.sha256(), xxhash.xxh3_128(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            strong.update(block)
            quick.update(block)
            size += len(block)
    return FileRecord(strong.hexdigest(), size, quick.hexdigest())


def matching(files: Mapping[str, FileRecord], patterns: Iterable[str]) -> dict[str, FileRecord]:
    """Return the files whose name matches one of the patterns."""
    globs = tuple(patterns)
    return {
        name: record
        for name, record in files.items()
        if any(fnmatchcase(name, pattern) for pattern in globs)
    }


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
