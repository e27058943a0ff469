"""What garbage collection must keep: the artifacts that run folders rest on.

Run folders are found through the store's register, wherever they lie, and in the folder of runs
that is given. A registered folder that is gone was moved, deleted, or is not mounted: nobody can
tell, so what it rests on is kept until the user says that it was deleted. While other runs rest on
all of that, there is nothing to ask: its entry waits for the day when they are gone.
"""

from dataclasses import dataclass
from pathlib import Path

from inject.errors import InputError
from spikein.runs.folder import is_run, rests_on, run_folders
from spikein.runs.record import holds_any, read_record
from spikein.runs.register import RegisteredRun, register_run, registered_runs
from spikein.store.filesystem import disk_full
from spikein.store.store import short_digest


@dataclass(frozen=True, kw_only=True)
class Roots:
    """The run folders of a store."""

    live: dict[Path, frozenset[str]]
    """Run folder → `kind/label-digest12` of what it rests on."""
    ids: dict[Path, str]
    """Run folder → its id; empty where it has no record."""
    gone: tuple[RegisteredRun, ...]
    """Registered run folders that are not where they were, and keep artifacts that no other does.
    """
    spent: tuple[RegisteredRun, ...]
    """Entries of folders that were found at another place, or of which the store holds nothing."""

    @property
    def known(self) -> bool:
        """Whether any run of the store is known at all."""
        return bool(self.live or self.gone)

    def needed(self, *, forget: frozenset[Path] = frozenset()) -> set[str]:
        """Return the short digests that must stay.

        Args:
            forget: folders that are gone for good.
        """
        names = {name for found in self.live.values() for name in found}
        names |= {name for run in self.gone if run.path not in forget for name in run.artifacts}
        return {short_digest(Path(name)) for name in names}


def find_roots(store: Path, runs_root: Path) -> Roots:
    """Find the run folders that were made from a store.

    Args:
        store: the store's folder.
        runs_root: a folder of runs to look in besides those that the store knows.

    Raises:
        InputError: when the register cannot be read, or a record of which it does not know what
            it says: that of a folder that is not in it, or of earlier results.
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
            # What the register says of it is kept.
            found = frozenset(run.artifacts)
        else:
            if (record.id if record else "") != run.id:
                absent.append(run)
                continue
            found = frozenset(rests_on(run.path))
        ids[run.path] = run.id
        live[run.path] = live.get(run.path, frozenset()) | found
    for folder in run_folders(runs_root):
        real = folder.resolve()
        if real in live:
            continue
        found = frozenset(rests_on(folder))
        if holds_any(store, found):
            record = read_record(folder)
            live[real], ids[real] = found, record.id if record else ""
    known = {id for id in ids.values() if id}
    kept = {name for found in live.values() for name in found}
    # A copy of a run folder has its id, too, and may rest on other artifacts since.
    gone = tuple(run for run in absent if holds_any(store, set(run.artifacts) - kept))
    spent = tuple(
        run
        for run in absent
        if run not in gone and (run.id in known or not holds_any(store, run.artifacts))
    )
    return Roots(live=live, ids=ids, gone=gone, spent=spent)


def settle_register(store: Path, roots: Roots, *, forget: frozenset[Path]) -> None:
    """Write down what was found: folders by their place of now, and none that is gone for good."""
    for folder, artifacts in roots.live.items():
        try:
            register_run(store, folder, id=roots.ids[folder], artifacts=artifacts)
        except OSError as error:
            # Then it waits for the next time: space is what the collection is about to make.
            if not disk_full(error):
                raise
    for run in (*roots.spent, *(run for run in roots.gone if run.path in forget)):
        run.entry.unlink(missing_ok=True)
