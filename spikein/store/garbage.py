"""Garbage: artifacts that no run folder needs, damaged ones, and leftovers of dead builders.

An artifact is needed when a run folder links to it, or when it is an input of a needed one.
Nothing is removed while another process uses the store.
"""

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from inject.corpus.corpus import FACTS_FILE, read_facts
from spikein.store.artifact import Artifact, open_artifact, require_current
from spikein.store.filesystem import delete_tree
from spikein.store.lock_marks import read_mark
from spikein.store.manifest import SHORT, Manifest, StoreError, read_manifest
from spikein.store.store import Store, short_digest


@dataclass(frozen=True, kw_only=True)
class RemovableFolder:
    """One removable folder."""

    path: Path
    size: int
    """Bytes."""
    reason: str


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The folders that a collection removed (or would remove) and kept."""

    removed: tuple[RemovableFolder, ...]
    kept: int
    """Artifacts that stay."""
    dry_run: bool

    @property
    def size(self) -> int:
        """Bytes freed."""
        return sum(folder.size for folder in self.removed)


def collect(
    store: Store,
    *,
    keep: Iterable[str] | Callable[[], Iterable[str]],
    dry_run: bool = False,
    confirmed: Collection | None = None,
) -> Collection:
    """Remove every artifact that is neither in `keep` nor an input of one that is.

    Args:
        store: the store to clean.
        keep: digests, full or their first 12 digits. A function that returns them is called
            when no process uses the store or can start to, so that a just published run loses
            nothing.
        dry_run: find, but remove nothing.
        confirmed: the artifacts shown to the user; others are not removed.

    Raises:
        StoreError: when another process uses the store.
    """
    agreed = None if confirmed is None else {entry.path for entry in confirmed.removed}

    def find() -> tuple[list[RemovableFolder], int]:
        needed = {digest[:SHORT] for digest in (keep() if callable(keep) else keep)}
        opened = {short_digest(folder): _try_open(folder) for folder in store.artifacts()}
        _add_inputs(needed, opened)
        garbage, n_kept = [], 0
        for folder in store.artifacts():
            if short_digest(folder) in needed or (agreed is not None and folder not in agreed):
                n_kept += 1
            else:
                garbage.append(_measure_garbage(folder, "no run needs it"))
        left = [entry for entry in _leftovers(store) if agreed is None or entry.path in agreed]
        return [*garbage, *left], n_kept

    return _collect(store, find, dry_run)


def collect_damaged(store: Store, *, dry_run: bool = False) -> Collection:
    """Hash every artifact again; remove those that are damaged, and those built from damaged ones.

    An artifact whose inputs no longer have the content it was built from is also removed. All kinds
    are treated alike, and the next run of an experiment rebuilds what it lacks.

    Raises:
        StoreError: when another process uses the store.
    """

    def find() -> tuple[list[RemovableFolder], int]:
        garbage, whole = [], {}
        manifests: dict[str, Manifest] = {}
        for folder in store.artifacts():
            try:
                artifact = Artifact(path=folder, manifest=read_manifest(folder))
                # Later artifacts were built from the recorded content, even if files changed.
                manifests[artifact.digest] = artifact.manifest
                store.verify(artifact)
                _require_tokens(artifact)
                whole[folder] = artifact
            except StoreError as error:
                garbage.append(_measure_garbage(folder, f"{error.where}: {error.problem}"))
        for folder, artifact in list(whole.items()):
            named = artifact.manifest.inputs.items()
            inputs = {name: manifests[digest] for name, digest in named if digest in manifests}
            try:
                require_current(artifact, inputs)
            except StoreError as error:
                garbage.append(_measure_garbage(folder, error.problem))
                whole.pop(folder)
        return sorted(garbage, key=lambda entry: entry.path), len(whole)

    return _collect(store, find, dry_run)


def _require_tokens(artifact: Artifact) -> None:
    """Check that a corpus contains its recorded tokens.

    An artifact of intact files may have been built from damaged ones: before parts of a killed
    build were checked, a corpus could be. Its audit refuses it on every run.

    Raises:
        StoreError: naming the file with other tokens.
    """
    if artifact.manifest.kind != "corpus" or FACTS_FILE not in artifact.manifest.files:
        return
    for shard in read_facts(artifact.path).shards:
        record = artifact.manifest.files.get(shard.name)
        if record is not None and record.sha256 != shard.sha256:
            place = str(artifact.path / shard.name)
            raise StoreError(f"contains other tokens than {FACTS_FILE} records", where=place)


def _collect(
    store: Store, find: Callable[[], tuple[list[RemovableFolder], int]], dry_run: bool
) -> Collection:
    if not store.root.is_dir():
        return Collection(removed=(), kept=0, dry_run=dry_run)
    if dry_run:
        garbage, n_kept = find()
        return Collection(removed=tuple(garbage), kept=n_kept, dry_run=True)
    try:
        with store.collecting_lock().acquire(timeout=0):
            if users := store.users():
                raise store_in_use(store, users)
            garbage, n_kept = find()
            removed = [entry for entry in garbage if _remove(store, entry.path)]
    except Timeout:
        raise store_in_use(store, []) from None
    return Collection(removed=tuple(removed), kept=n_kept, dry_run=False)


def store_in_use(store: Store, users: list[Path]) -> StoreError:
    """Return the error that names the processes that use the store.

    Args:
        store: the store.
        users: their marks; none if another `gc` holds the store's lock.
    """
    count = max(len(users), 1)
    marks = [(path, read_mark(path)) for path in users]
    named = "; ".join(str(mark) for _, mark in marks if mark)
    elsewhere = [path for path, mark in marks if mark and mark.host != socket.gethostname()]
    hint = "Wait until it has finished, then run `spikein gc` again."
    if elsewhere:
        hint += (
            " A process on another host cannot be checked from here; if it no longer runs, "
            f"delete {', '.join(str(path) for path in elsewhere)}."
        )
    return StoreError(
        f"{count} other process{'es use' if count > 1 else ' uses'} the store"
        + (f": {named}" if named else ""),
        where=str(store.root),
        hint=hint,
    )


def _remove(store: Store, path: Path) -> bool:
    if path.name.startswith(".") or path.parent.name.startswith("."):
        delete_tree(path)
        return True
    return store.remove(path, digest12=short_digest(path))


def _try_open(folder: Path) -> Artifact | None:
    try:
        return open_artifact(folder)
    except StoreError:
        return None


def _add_inputs(needed: set[str], opened: dict[str, Artifact | None]) -> None:
    waiting = list(needed)
    while waiting:
        artifact = opened.get(waiting.pop())
        inputs = artifact.manifest.inputs.values() if artifact else ()
        for short in {digest[:SHORT] for digest in inputs} - needed:
            needed.add(short)
            waiting.append(short)


def _leftovers(store: Store) -> list[RemovableFolder]:
    # No process uses the store, so the builders of these are dead.
    half_built = [*store.root.glob("*/.*.tmp"), *store.root.glob(".unfinished/*")]
    return [
        _measure_garbage(folder, "left by a run that died")
        for folder in sorted(half_built)
        if folder.is_dir()
    ]


def _measure_garbage(folder: Path, reason: str) -> RemovableFolder:
    # A link takes no space, and its target does not belong to the store.
    inside = () if folder.is_symlink() else folder.rglob("*")
    size = sum(path.lstat().st_size for path in inside if path.is_file())
    return RemovableFolder(path=folder, size=size, reason=reason)
