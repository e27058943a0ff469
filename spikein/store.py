"""The content-addressed store: artifacts that are whole, read-only and built once.

`<root>/<kind>/<label>-<digest12>/` holds one artifact. It is built in a hidden sibling under a
lease (one lock file a digest), flushed to disk with its manifest last, made read-only, then
renamed. A kill at any moment leaves at most a hidden folder, which the next holder of the lease
removes. The label is for people only; the digest is what counts. Parts that a build wants to find
again after a kill lie in `<root>/.unfinished/` until the artifact is published.

Cost beyond the build itself: one reading of the files to hash them, one fsync a file.
"""

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from inject.digest import file_digest
from inject.errors import InputError
from inject.files import fsync
from spikein.disk import delete_tree, disk_full, free_space, settle, unwritable
from spikein.folders import CHANGE_STORE, writing
from spikein.manifest import (
    DAMAGE_HINT,
    SHORT,
    Manifest,
    Recipe,
    StoreError,
    content_digest,
    file_records,
    read_manifest,
)
from spikein.marks import clear_mark, is_dead, read_mark, write_mark

Notice = Callable[[str], None]

_POLL_SECONDS = 0.1
_ARTIFACT_NAME = re.compile(rf"(?P<label>.+)-(?P<short>[0-9a-f]{{{SHORT}}})")


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


@dataclass(frozen=True, kw_only=True)
class Obtained:
    """An artifact, and whether this call built it."""

    artifact: Artifact
    built: bool
    seconds: float
    """How long this call took, waiting included."""


class Store:
    """A folder of artifacts. Several processes may use one store at once."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def find(self, digest: str, *, kind: str | None = None) -> Artifact | None:
        """Return the artifact with this digest, or None.

        Its manifest and the sizes of its files are checked; `verify` checks their contents.

        Args:
            digest: the full digest, or at least its first 12 digits.
            kind: the folder to look in; all of them when None.

        Raises:
            StoreError: when it is damaged, naming the file.
        """
        for folder in self._folders(kind or "*", digest[:SHORT]):
            artifact = open_artifact(folder)
            if artifact.digest.startswith(digest):
                return artifact
        return None

    def artifacts(self) -> Iterator[Path]:
        """Yield the folder of every artifact, finished or damaged, in the order of names."""
        yield from self._folders("*", "*")

    def obtain(
        self,
        recipe: Recipe,
        build: Callable[[Path], None],
        *,
        label: str,
        volatile: tuple[str, ...] = (),
        protected: bool = False,
        notice: Notice | None = None,
    ) -> Obtained:
        """Return the artifact of `recipe`, building it if nobody has.

        Args:
            recipe: its identity.
            build: writes the files into the (empty, existing) folder it is given.
            label: for people; made safe as a folder name.
            volatile: patterns of files that may differ between builds.
            protected: the artifact holds texts that must not be shared.
            notice: told when this call has to wait for another process.

        Raises:
            StoreError: when the disk is full or the store cannot be written; nothing is left.
        """
        started = time.monotonic()
        name = f"{recipe.kind}/{safe_label(label)}-{recipe.digest[:SHORT]}"
        artifact = self.find(recipe.digest, kind=recipe.kind)
        if artifact is not None:
            return Obtained(artifact=artifact, built=False, seconds=time.monotonic() - started)
        with self._writing(name), self._lease(recipe.digest, name, notice):
            artifact = self.find(recipe.digest, kind=recipe.kind)
            built = artifact is None
            if artifact is None:
                artifact = self._build(recipe, build, name, label, volatile, protected)
        return Obtained(artifact=artifact, built=built, seconds=time.monotonic() - started)

    def unfinished(self, recipe: Recipe) -> Path:
        """Return the folder for parts of an artifact that survive a kill of its build."""
        return self.root / ".unfinished" / f"{recipe.kind}-{recipe.digest[:SHORT]}"

    def verify(self, artifact: Artifact) -> None:
        """Hash every file again.

        Raises:
            StoreError: naming the first file that is missing, changed, or not in the manifest.
        """
        records = artifact.manifest.files
        for name, record in records.items():
            path = artifact.path / name
            if not path.is_file() or file_digest(path) != record.sha256:
                raise StoreError("changed since it was built", where=str(path), hint=DAMAGE_HINT)
        extra = sorted(set(file_records(artifact.path)) - set(records))
        if extra:
            raise StoreError(
                "not part of the artifact", where=str(artifact.path / extra[0]), hint=DAMAGE_HINT
            )

    def remove(self, folder: Path, *, digest12: str) -> bool:
        """Delete one artifact, all at once to a reader's eye; False if it is being built."""
        lock = self._lock(digest12)
        try:
            with lock.acquire(timeout=0):
                hidden = self._hidden(folder.parent, digest12)
                folder.rename(hidden)
                delete_tree(hidden)
                Path(lock.lock_file).unlink(missing_ok=True)
        except Timeout:
            return False
        return True

    @contextmanager
    def in_use(self, *, required: bool = True) -> Iterator[None]:
        """Mark the store as used by this process, so that `gc` elsewhere waits its turn.

        Args:
            required: False where nothing may have to be built. A store that cannot be written
                then needs no mark, as nothing can be removed from it either.
        """
        mark = self._use_mark(required)
        try:
            yield
        finally:
            if mark is not None:
                mark.release()
                Path(mark.lock_file).unlink(missing_ok=True)

    def users(self) -> list[Path]:
        """Return the marks of the processes that use the store; those of dead ones are removed."""
        alive = []
        for path in sorted(self._leases().glob("use-*.lock")):
            if is_dead(path):
                path.unlink(missing_ok=True)
            else:
                alive.append(path)
        return alive

    def collecting_lock(self) -> FileLock:
        """Return the lock that keeps new users out while garbage is collected."""
        self._leases().mkdir(parents=True, exist_ok=True)
        return FileLock(self._leases() / "collect.lock")

    def _build(
        self,
        recipe: Recipe,
        build: Callable[[Path], None],
        name: str,
        label: str,
        volatile: tuple[str, ...],
        protected: bool,
    ) -> Artifact:
        final = self.root / name
        short = recipe.digest[:SHORT]
        for stale in final.parent.glob(f".{short}.*.tmp"):
            delete_tree(stale)
        hidden = self._hidden(final.parent, short)
        hidden.mkdir(parents=True)
        started = time.monotonic()
        try:
            build(hidden)
            files = file_records(hidden)
            manifest = Manifest(
                kind=recipe.kind,
                label=label,
                digest=recipe.digest,
                identity=recipe.identity(),
                inputs=dict(recipe.inputs),
                files=files,
                volatile=volatile,
                content=content_digest(files, volatile),
                seconds=round(time.monotonic() - started, 3),
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                libraries=dict(recipe.libraries),
                protected=protected,
            )
            settle(hidden, manifest)
            hidden.rename(final)
        except BaseException:
            delete_tree(hidden)
            raise
        fsync(final.parent)
        delete_tree(self.unfinished(recipe))
        return Artifact(path=final, manifest=manifest)

    @contextmanager
    def _lease(self, digest: str, name: str, notice: Notice | None) -> Iterator[None]:
        lock = self._lock(digest[:SHORT])
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if notice:
                mark = read_mark(Path(lock.lock_file))
                who = f" ({mark})" if mark else ""
                notice(f"another run is building {name}{who}; waiting for it")
            lock.acquire(poll_interval=_POLL_SECONDS)
        write_mark(lock)
        try:
            yield
        finally:
            clear_mark(lock)
            lock.release()

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Turn a full or unwritable disk into an error that says where and how much is free."""
        try:
            yield
        except Exception as error:
            if disk_full(error):
                raise StoreError(
                    f"the disk is full: {free_space(self.root)} left while building {name}",
                    where=str(self.root),
                    hint="Free some space (`spikein gc --dry-run` shows what no run needs), or "
                    "give another --store; what was finished is kept.",
                ) from error
            if unwritable(error, self.root):
                raise StoreError(
                    "cannot be written", where=str(self.root), hint="Give another --store."
                ) from error
            raise

    def _folders(self, kind: str, short: str) -> Iterator[Path]:
        for folder in sorted(self.root.glob(f"{kind}/*-{short}")):
            hidden = folder.name.startswith(".") or folder.parent.name.startswith(".")
            if not hidden and _ARTIFACT_NAME.fullmatch(folder.name):
                yield folder

    def _lock(self, short: str) -> FileLock:
        self._leases().mkdir(parents=True, exist_ok=True)
        return FileLock(self._leases() / f"{short}.lock")

    def _use_mark(self, required: bool) -> FileLock | None:
        path = self._leases() / f"use-{os.getpid()}-{secrets.token_hex(4)}.lock"
        mark = FileLock(path)
        try:
            what = "a mark that it is used"
            with writing(self.root, CHANGE_STORE, what), self.collecting_lock():
                self.users()
                mark.acquire(timeout=0)
                write_mark(mark)
        except InputError:
            if required:
                raise
            return None
        return mark

    def _leases(self) -> Path:
        return self.root / ".leases"

    def _hidden(self, parent: Path, short: str) -> Path:
        return parent / f".{short}.{secrets.token_hex(4)}.tmp"


def open_artifact(folder: Path) -> Artifact:
    """Open an artifact by its folder; its manifest and the sizes of its files are checked.

    Raises:
        StoreError: when it is damaged, naming the file.
    """
    if folder.is_symlink():
        raise StoreError(
            "is a link, and an artifact is a folder of its own", where=str(folder), hint=DAMAGE_HINT
        )
    manifest = read_manifest(folder)
    for name, record in manifest.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
        except OSError:
            raise StoreError("is missing", where=str(path), hint=DAMAGE_HINT) from None
        if size != record.size:
            raise StoreError(
                f"has {size} bytes instead of {record.size}", where=str(path), hint=DAMAGE_HINT
            )
    return Artifact(path=folder, manifest=manifest)


def safe_label(text: str) -> str:
    """Return a text as part of a folder's name: no separators, no leading dot, at most 80."""
    return re.sub(r"[^A-Za-z0-9._=+,-]+", "-", text).strip(".-,")[:80].rstrip(".-,") or "unnamed"


def short_digest(folder: Path) -> str:
    """Return the 12 digits at the end of an artifact folder's name."""
    return folder.name.rpartition("-")[2]
