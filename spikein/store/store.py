"""The content-addressed store: artifacts that are complete, read-only and built once.

`<root>/<kind>/<label>-<digest12>/` contains one artifact. It is built in a hidden sibling under a
lease (one lock file per digest), flushed to disk with its manifest, made read-only, then renamed. A
kill at any moment leaves at most a hidden folder, which the next owner of the lease removes. The
label is only for display; the digest is the identity. Parts of a build that survive a kill are in
`<root>/.unfinished/` until the artifact is published.

Cost beyond the build itself: one reading of the files to hash them, one fsync per file.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from inject.errors import InputError
from inject.files import fsync
from inject.hub.resolver import require_resolved
from inject.step import InputProjection, Recipe
from spikein.store.artifact import (
    Artifact,
    open_artifact,
    require_current,
    require_sha256,
    verified,
)
from spikein.store.environment import environment
from spikein.store.filesystem import (
    CHANGE_STORE,
    delete_tree,
    finish_artifact,
    writing,
)
from spikein.store.listing import ANY, ContentIndex, artifact_folders, link_files
from spikein.store.lock_marks import active_uses, clear_mark, mark_use, read_mark, write_mark
from spikein.store.manifest import SHORT, Manifest, StoreError, content_digest, file_records

Notice = Callable[[str], None]

_POLL_SECONDS = 0.1
_FREE_SPACE = f"`spikein gc --dry-run` shows what no run needs. {CHANGE_STORE}"


@dataclass(frozen=True, kw_only=True)
class ArtifactRules:
    """Storage rules of an artifact, which do not enter its identity."""

    volatile: tuple[str, ...] = ()
    """Patterns of files that may differ between builds."""
    protected: bool = False
    """The artifact contains texts that must not be shared."""
    reads: Mapping[str, InputProjection] = field(default_factory=dict)
    """Input name to the part that is read, if that is less than everything."""
    facets: Mapping[str, Callable[[Path], str]] = field(default_factory=dict)
    """Parts of the content that later steps may read separately: name to the part's digest."""


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    """An artifact, and whether this call built it."""

    artifact: Artifact
    built: bool
    same_as: Artifact | None = None
    """The artifact whose files this call reused, since all its inputs were the same."""
    seconds: float
    """How long this call took, waiting included."""


class Store:
    """A folder of artifacts. Several processes may use one store at once."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._index = ContentIndex()

    def find(
        self, digest: str, *, kind: str | None = None, verify: bool = False
    ) -> Artifact | None:
        """Return the artifact with this digest, or None.

        Its manifest and the names, kinds and sizes of its files are checked.

        Args:
            digest: the full digest, or at least its first 12 digits.
            kind: the folder to look in; all of them when None.
            verify: also check the contents, as before any reading of them.

        Raises:
            StoreError: when it is damaged, naming the file.
        """
        for folder, _ in artifact_folders(self.root, kind or ANY, digest[:SHORT]):
            artifact = open_artifact(folder)
            if artifact.digest.startswith(digest):
                return verified(artifact) if verify else artifact
        return None

    def equal(self, kind: str, content_key: str) -> Artifact | None:
        """Return an intact artifact built from the same content in the same way, or None."""
        return self._index.equal(artifact_folders(self.root, kind), content_key)

    def could_reuse(self, recipe: Recipe) -> bool:
        """Return whether an artifact differs from the recipe only in its inputs."""
        return self._index.could_reuse(artifact_folders(self.root, recipe.kind), recipe)

    def artifacts(self) -> Iterator[Path]:
        """Yield the folder of every artifact, finished or damaged, in the order of names."""
        yield from (folder for folder, _ in artifact_folders(self.root))

    def obtain(
        self,
        recipe: Recipe,
        build: Callable[[Path], None],
        *,
        label: str,
        inputs: Mapping[str, Artifact] | None = None,
        rules: ArtifactRules | None = None,
        notice: Notice | None = None,
    ) -> BuildResult:
        """Return the artifact of `recipe`, verified; build it unless an intact one is there.

        Args:
            recipe: its identity.
            build: writes the files into a given (empty, existing) folder.
            label: for display; converted to a safe folder name.
            inputs: the artifacts it is built from.
            rules: of its storage.
            notice: called with a message when this call has to wait for another process, and when
                something was damaged.

        Raises:
            StoreError: when the disk is full or the store cannot be written; nothing is left.
            SpikeinError: for a recipe without a resolved hub commit, as a plan may have.
        """
        require_resolved(recipe.settings, label=recipe.kind)
        started = time.monotonic()
        name = f"{recipe.kind}/{safe_label(label)}-{recipe.digest[:SHORT]}"
        manifests = {key: source.manifest for key, source in (inputs or {}).items()}
        rules = rules or ArtifactRules()
        same_as = None
        artifact = self._find_intact(recipe, manifests, None)
        if artifact is not None:
            return BuildResult(artifact=artifact, built=False, seconds=time.monotonic() - started)
        read = {
            key: manifest.content_read(rules.reads.get(key, InputProjection()))
            for key, manifest in manifests.items()
        }
        facts = {
            "label": label,
            "digest": recipe.digest,
            "identity": recipe.identity(),
            "inputs": dict(recipe.inputs),
            "libraries": dict(recipe.libraries),
            "protected": rules.protected,
            "input_content": read,
        }
        with writing(self.root, _FREE_SPACE, name), self._lease(recipe.digest, name, notice):
            artifact = self._find_intact(recipe, manifests, notice or (lambda _: None))
            built = artifact is None
            if artifact is None and (same_as := self.equal(recipe.kind, recipe.content_key(read))):
                built = False
                artifact = self._reuse(recipe, same_as, name, facts)
            if artifact is None:
                artifact = self._build(recipe, build, name, facts, rules)
        return BuildResult(
            artifact=artifact, built=built, same_as=same_as, seconds=time.monotonic() - started
        )

    def unfinished(self, recipe: Recipe) -> Path:
        """Return the folder for parts of an artifact that survive a kill of its build."""
        return self.root / ".unfinished" / f"{recipe.kind}-{recipe.digest[:SHORT]}"

    def verify(self, artifact: Artifact) -> None:
        """Check the listing and hash every file with SHA-256, even if it was hashed before.

        Raises:
            StoreError: naming the first file that is missing, changed, or not in the manifest.
        """
        require_sha256(artifact)

    def remove(self, folder: Path, *, digest12: str) -> bool:
        """Delete one artifact, atomically for readers; False if it is being built."""
        lock = self._lock(digest12)
        try:
            with lock.acquire(timeout=0):
                self._drop(folder)
                Path(lock.lock_file).unlink(missing_ok=True)
        except Timeout:
            return False
        return True

    @contextmanager
    def in_use(self, *, required: bool = True) -> Iterator[None]:
        """Mark the store as used by this process, so that `gc` of another process waits.

        Args:
            required: False if perhaps nothing has to be built. A store that cannot be written
                then needs no mark, since nothing can be removed from it either.
        """
        mark = self._use_mark(required)
        try:
            yield
        finally:
            if mark is not None:
                mark.release()
                # The disk can no longer be written: the mark of a dead process does not count.
                with suppress(OSError):
                    Path(mark.lock_file).unlink(missing_ok=True)

    def users(self) -> list[Path]:
        """Return the marks of the processes that use the store; those of dead ones are removed."""
        return active_uses(self._leases())

    def collecting_lock(self) -> FileLock:
        """Return the lock that keeps new users out while garbage is collected."""
        self._leases().mkdir(parents=True, exist_ok=True)
        return FileLock(self._leases() / "collect.lock")

    def _find_intact(
        self, recipe: Recipe, inputs: Mapping[str, Manifest], notice: Notice | None
    ) -> Artifact | None:
        """Return the artifact if it is intact; with `notice`, report and remove a damaged one."""
        for folder, _ in artifact_folders(self.root, recipe.kind, recipe.digest[:SHORT]):
            try:
                artifact = verified(open_artifact(folder))
                if artifact.digest != recipe.digest:
                    continue
                require_current(artifact, inputs)
            except StoreError as error:
                if notice is not None:
                    notice(f"{error.where} {error.problem}; it is rebuilt.")
                    self._drop(folder)
                continue
            return artifact
        return None

    def _build(
        self,
        recipe: Recipe,
        build: Callable[[Path], None],
        name: str,
        facts: dict[str, Any],
        rules: ArtifactRules,
    ) -> Artifact:
        started = time.monotonic()

        def fill(hidden: Path) -> Manifest:
            build(hidden)
            files = file_records(hidden)
            return Manifest(
                **facts,
                kind=recipe.kind,
                files=files,
                volatile=rules.volatile,
                content=content_digest(files, rules.volatile),
                seconds=round(time.monotonic() - started, 3),
                created=_timestamp(),
                environment=environment(),
                content_key=recipe.content_key(facts["input_content"]),
                facets={facet: digest(hidden) for facet, digest in rules.facets.items()},
            )

        return self._publish(recipe, name, fill)

    def _reuse(self, recipe: Recipe, same: Artifact, name: str, facts: dict[str, Any]) -> Artifact:
        """Build the artifact of `recipe` from the files of one with the same inputs."""

        def fill(hidden: Path) -> Manifest:
            link_files(same, hidden)
            return replace(same.manifest, **facts, created=_timestamp(), same_as=same.digest)

        return verified(self._publish(recipe, name, fill))

    def _publish(self, recipe: Recipe, name: str, fill: Callable[[Path], Manifest]) -> Artifact:
        """Fill a hidden folder, flush it with its manifest, and rename it."""
        final = self.root / name
        short = recipe.digest[:SHORT]
        for stale in final.parent.glob(f".{short}.*.tmp"):
            delete_tree(stale)
        hidden = self._hidden_path(final.parent, short)
        hidden.mkdir(parents=True)
        try:
            manifest = fill(hidden)
            finish_artifact(hidden, manifest)
            hidden.rename(final)
        except BaseException:
            delete_tree(hidden)
            raise
        fsync(final.parent)
        delete_tree(self.unfinished(recipe))
        return Artifact(path=final, manifest=manifest)

    def _drop(self, folder: Path) -> None:
        """Delete an artifact under its lease; a link is deleted without its target."""
        if folder.is_symlink():
            folder.unlink()
            return
        hidden = self._hidden_path(folder.parent, short_digest(folder))
        folder.rename(hidden)
        delete_tree(hidden)

    @contextmanager
    def _lease(self, digest: str, name: str, notice: Notice | None) -> Iterator[None]:
        lock = self._lock(digest[:SHORT])
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if notice:
                mark = read_mark(Path(lock.lock_file))
                owner = f" ({mark})" if mark else ""
                notice(f"another run is building {name}{owner}; waiting for it")
            lock.acquire(poll_interval=_POLL_SECONDS)
        write_mark(lock)
        try:
            yield
        finally:
            clear_mark(lock)
            lock.release()

    def _lock(self, short: str) -> FileLock:
        self._leases().mkdir(parents=True, exist_ok=True)
        return FileLock(self._leases() / f"{short}.lock")

    def _use_mark(self, required: bool) -> FileLock | None:
        try:
            purpose = "a mark that it is used"
            with writing(self.root, CHANGE_STORE, purpose), self.collecting_lock():
                return mark_use(self._leases())
        except InputError:
            if required:
                raise
        return None

    def _leases(self) -> Path:
        return self.root / ".leases"

    def _hidden_path(self, parent: Path, short: str) -> Path:
        return parent / f".{short}.{secrets.token_hex(4)}.tmp"


def _timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def safe_label(text: str) -> str:
    """Return a text as part of a folder's name: no separators, no leading dot, at most 80."""
    text = re.sub(r",\s+", ",", text)
    return re.sub(r"[^A-Za-z0-9._=+,-]+", "-", text).strip(".-,")[:80].rstrip(".-,") or "unnamed"


def short_digest(folder: Path) -> str:
    """Return the 12 digits at the end of an artifact folder's name."""
    return folder.name.rpartition("-")[2]
