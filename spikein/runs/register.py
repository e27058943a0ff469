"""The run folders of a store, and which artifacts they need: what garbage collection must keep.

The store's register (`<store>/.runs/`, a file for each run folder) lists the run folders that were
made from it, wherever they are, and their artifacts. An entry is written before its run folder is
visible: a kill in between leaves an entry without a folder, which keeps too much and never too
little. A registered folder that is missing was moved, deleted, or is not mounted; the difference is
unknown, so its artifacts are kept until the user confirms that it was deleted. While other runs
need all of them, no confirmation is required: the entry stays until those runs are also deleted.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from inject.digest import digest
from inject.errors import InputError
from inject.files import disk_full, write_text
from spikein.runs.folder import is_run, run_folders
from spikein.runs.record import holds_any, read_record
from spikein.store.manifest import StoreError
from spikein.store.store import short_digest

REGISTER = ".runs"


@dataclass(frozen=True, kw_only=True)
class RegisteredRun:
    """One entry."""

    entry: Path
    """Its file."""
    id: str
    """Of the run folder (`RunRecord.id`); empty if it has no record."""
    path: Path
    """The path at which the run folder was published."""
    artifacts: tuple[str, ...]
    """`kind/label-digest12` of its artifacts."""


def register_run(store: Path, folder: Path, *, id: str, artifacts: Iterable[str]) -> None:
    """Record the artifacts of the store that a run folder needs.

    Args:
        store: the store's folder.
        folder: the run folder; need not exist yet.
        id: of the run folder.
        artifacts: `kind/label-digest12` each.
    """
    path = str(folder.resolve())
    values = {"id": id, "path": path, "artifacts": sorted(set(artifacts))}
    entry = _entry(store, id, path)
    text = json.dumps(values, indent=1) + "\n"
    if not entry.is_file() or entry.read_text(encoding="utf-8") != text:
        write_text(entry, text)


def registered_runs(store: Path) -> list[RegisteredRun]:
    """Return all entries, by the path of the run folder.

    Raises:
        StoreError: when one cannot be read.
    """
    runs = []
    for entry in sorted((store / REGISTER).glob("[!.]*.json")):
        try:
            values = json.loads(entry.read_text(encoding="utf-8"))
            run = RegisteredRun(
                entry=entry,
                id=str(values["id"]),
                path=Path(values["path"]),
                artifacts=tuple(str(name) for name in values["artifacts"]),
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreError(
                f"the register of runs cannot be read: {error}",
                where=str(entry),
                hint="Delete this file, then give the folder of all runs by --runs.",
            ) from None
        runs.append(run)
    return sorted(runs, key=lambda run: (str(run.path), run.id))


@dataclass(frozen=True, kw_only=True)
class RunRegistry:
    """The run folders of a store."""

    live: dict[Path, frozenset[str]]
    """Run folder → `kind/label-digest12` of its artifacts."""
    ids: dict[Path, str]
    """Run folder → its id; empty if it has no record."""
    missing: tuple[RegisteredRun, ...]
    """Missing registered folders with artifacts that no other folder needs."""
    obsolete: tuple[RegisteredRun, ...]
    """Entries of folders that were found at another place, or whose artifacts are all deleted."""

    @property
    def known(self) -> bool:
        """Whether any run of the store is known."""
        return bool(self.live or self.missing)

    def needed(self, *, forget: frozenset[Path] = frozenset()) -> set[str]:
        """Return the short digests that must stay.

        Args:
            forget: missing folders that were deleted.
        """
        names = {name for artifacts in self.live.values() for name in artifacts}
        names |= {name for run in self.missing if run.path not in forget for name in run.artifacts}
        return {short_digest(Path(name)) for name in names}


def find_roots(store: Path, runs_root: Path) -> RunRegistry:
    """Find the run folders that were made from a store.

    Args:
        store: the store's folder.
        runs_root: a folder of runs to search in addition to those that the store knows.

    Raises:
        InputError: when the register cannot be read, or the record of a folder that is not in it.
    """
    live: dict[Path, frozenset[str]] = {}
    ids: dict[Path, str] = {}
    absent = []
    for run in registered_runs(store):
        if not is_run(run.path):
            absent.append(run)
            continue
        try:
            record = read_record(run.path)
        except InputError:
            # Its entry in the register lists the artifacts.
            artifacts = frozenset(run.artifacts)
        else:
            if record.id != run.id:
                absent.append(run)
                continue
            artifacts = frozenset(record.artifacts)
        ids[run.path] = run.id
        live[run.path] = live.get(run.path, frozenset()) | artifacts
    for folder in run_folders(runs_root):
        real = folder.resolve()
        if real in live:
            continue
        record = read_record(folder)
        if holds_any(store, record.artifacts):
            live[real], ids[real] = frozenset(record.artifacts), record.id
    known_ids = {id for id in ids.values() if id}
    needed = {name for artifacts in live.values() for name in artifacts}
    # A copy of a run folder has the same id, and may have other artifacts by now.
    missing = tuple(run for run in absent if holds_any(store, set(run.artifacts) - needed))
    obsolete = tuple(
        run
        for run in absent
        if run not in missing and (run.id in known_ids or not holds_any(store, run.artifacts))
    )
    return RunRegistry(live=live, ids=ids, missing=missing, obsolete=obsolete)


def update_register(store: Path, roots: RunRegistry, *, forget: frozenset[Path]) -> None:
    """Rewrite the register: each folder at its present place, without obsolete entries."""
    for folder, artifacts in roots.live.items():
        try:
            register_run(store, folder, id=roots.ids[folder], artifacts=artifacts)
        except OSError as error:
            # Retried the next time: the collection is about to free space.
            if not disk_full(error):
                raise
    for run in (*roots.obsolete, *(run for run in roots.missing if run.path in forget)):
        run.entry.unlink(missing_ok=True)


def _entry(store: Path, id: str, path: str) -> Path:
    return store / REGISTER / f"{digest([id, path])[:16]}.json"
