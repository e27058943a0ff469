"""Run folders: `runs/<name>/`, whole or absent, with links to the artifacts they rest on.

A run folder is filled in a hidden sibling and swapped with the old one in a single step where
the system can (Linux: `renameat2` with RENAME_EXCHANGE), else by two renames. What the user put
there stays, and earlier results that differ go to its `history/` (see `run_history`). Links are
relative, so that a folder holding both `runs/` and `store/` can be moved as one; no link leads to
an artifact with protected texts, since an archive that follows links would hold them.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from inject.digest import digest
from inject.errors import InputError, did_you_mean
from inject.files import fsync
from spikein import __version__
from spikein.runs.history import ARTIFACTS, BEFORE_RECORDS, Foreign, entries, keep_results
from spikein.runs.record import (
    FORMAT,
    RECORD,
    RunRecord,
    place_of,
    read_record,
    resolved_places,
    write_record,
)
from spikein.runs.swap import flush_tree, swap
from spikein.store.artifact import Artifact
from spikein.store.filesystem import delete_tree

PROTECTED = f"{ARTIFACTS}/protected.txt"
_PROTECTED_SAYS = """\
These artifacts hold texts of protected datasets, which must not be revealed in plain text.
No link leads to them from here, so that this folder can be copied and packed. They lie in the
store that run.json names: do not share those.

"""
_MARK = ".spikein-run"
_LINKED = ".linked"


@dataclass(frozen=True, kw_only=True)
class Published:
    """A run folder that was made or replaced."""

    folder: Path
    record: RunRecord
    earlier: Path | None
    """Where the results that it held before are kept; None where they are the same."""


def publish_run(
    runs_root: Path,
    name: str,
    fill: Callable[[Path], None],
    *,
    built: bool = True,
    started_in: Path | None = None,
    announce: Callable[[Path, RunRecord, frozenset[str]], None] | None = None,
) -> Published:
    """Make or replace the run folder `name`; readers see the old one or the whole new one.

    Args:
        runs_root: the folder of all runs.
        name: a safe folder name (experiment names are).
        fill: writes everything into the hidden folder it is given.
        built: whether anything was built for it; else the time of the same results stays.
        started_in: where relative paths of the experiment start; the working directory when None.
        announce: told folder, record, and all artifacts that it and its history rest on, before
            the folder can be seen.

    Raises:
        InputError: when a folder of that name exists that is no run folder.
    """
    final = runs_root / name
    leases = runs_root / ".leases"
    leases.mkdir(parents=True, exist_ok=True)
    with FileLock(leases / f"{name}.lock"):
        check_ours(final)
        key = digest(name)[:12]
        for stale in runs_root.glob(f".{key}.*.tmp"):
            delete_tree(stale)
        hidden = runs_root / f".{key}.{secrets.token_hex(4)}.tmp"
        hidden.mkdir()
        try:
            (hidden / _MARK).touch()
            fill(hidden)
            old = _record_of(final, hidden) if final.exists() else None
            foreign = Foreign(frozenset(old.files) if old else frozenset())
            if old is not None:
                foreign.carry(final, hidden)
            record = _new_record(hidden, name, old, built, started_in or Path.cwd(), foreign.kept)
            earlier = None
            if old is not None:
                earlier = keep_results(final, hidden, earlier=old, record=record)
            write_record(hidden, record)
            flush_tree(hidden)
            if announce is not None:
                announce(final, record, frozenset(rests_on(hidden, damaged=True)))
            swap(hidden, final)
            if old is not None and hidden.exists():
                _rescue(foreign, hidden, final)
        finally:
            delete_tree(hidden)
        fsync(runs_root)
    return Published(folder=final, record=record, earlier=final / earlier if earlier else None)


def check_ours(folder: Path) -> None:
    """Refuse to replace what is no run folder.

    Raises:
        InputError: when something of that name is not ours.
    """
    if (folder.exists() or folder.is_symlink()) and not (folder / _MARK).is_file():
        raise InputError(
            "exists and was not made by spikein, so it is not replaced",
            where=str(folder),
            hint="Give the experiment another name, or give another --runs folder.",
        )


def link_artifact(run_folder: Path, artifact: Artifact) -> None:
    """Let a hidden run folder rest on an artifact, with a link unless it holds protected texts."""
    name = f"{artifact.manifest.kind}/{artifact.path.name}"
    path = artifact.path.resolve()
    with (run_folder / _LINKED).open("a", encoding="utf-8") as file:
        line = [name, artifact.manifest.protected, os.fsdecode(path.parent.parent)]
        file.write(json.dumps(line) + "\n")
    link = run_folder / ARTIFACTS / name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not artifact.manifest.protected and not link.is_symlink():
        link.symlink_to(os.path.relpath(path, link.parent.resolve()))


def linked_artifacts(run_folder: Path, store: Path | None = None) -> list[Path]:
    """Return the artifact folders that a run rests on, also those that are gone.

    Args:
        run_folder: the run's folder, wherever it lies now.
        store: the store's folder; None for the one that the run remembers.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(run_folder)
    if record is None:
        links = list(_links(run_folder))
        return links if store is None else [store / _name(link) for link in links]
    root = store or store_of(run_folder) or Path(record.store.absolute if record.store else "")
    return [root / name for name in record.artifacts]


def store_of(run_folder: Path) -> Path | None:
    """Return the store that a run remembers; None where it is not found.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(run_folder)
    if record is not None:
        return resolved_places(run_folder, record)[0]
    return next((link.parent.parent for link in _links(run_folder)), None)


def started_in(run_folder: Path) -> Path:
    """Return the folder where the relative paths of a run's experiment start.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(run_folder)
    return Path.cwd() if record is None else resolved_places(run_folder, record)[1]


def rests_on(run_folder: Path, *, damaged: bool = False) -> set[str]:
    """Return `kind/label-digest12` of all that a run and its earlier results rest on.

    Args:
        run_folder: the run's folder.
        damaged: pass over earlier results whose record cannot be read.

    Raises:
        InputError: when a record cannot be read.
    """
    record = read_record(run_folder)
    found = set(record.artifacts) if record else set()
    found |= {_name(link) for link in _links(run_folder)}
    for _, earlier in entries(run_folder, damaged=damaged):
        found |= set(earlier.artifacts)
    return found


def run_folders(runs_root: Path) -> list[Path]:
    """Return all run folders, by name."""
    if not runs_root.is_dir():
        return []
    return [folder for folder in sorted(runs_root.iterdir()) if is_run(folder)]


def find_run(runs_root: Path, name: str) -> Path:
    """Return a run folder by its name below `runs_root`, or by its path.

    Raises:
        InputError: when there is none, with the runs that there are.
    """
    for folder in (runs_root / name, Path(name)):
        if is_run(folder):
            return folder
    known = [folder.name for folder in run_folders(runs_root)]
    raise InputError(
        f"no run is called {name!r}.{did_you_mean(name, known)}",
        where=str(runs_root),
        allowed=", ".join(known) or None,
        hint=None if known else "There are no runs yet; start with `spikein run FILE`.",
    )


def is_run(folder: Path) -> bool:
    """Return whether a folder was made by `publish_run` and is visible."""
    return not folder.name.startswith(".") and (folder / _MARK).is_file()


def finished(folder: Path) -> datetime:
    """Return when a run's last step was built, in UTC.

    Raises:
        InputError: when its record cannot be read.
    """
    record = read_record(folder)
    if record is not None:
        return datetime.fromisoformat(record.finished)
    return datetime.fromtimestamp((folder / _MARK).stat().st_mtime, UTC)


def _links(run_folder: Path) -> Iterator[Path]:
    """Yield the artifact folders that links lead to, dangling links included."""
    for link in sorted((run_folder / ARTIFACTS).glob("*/*")):
        if link.is_symlink():
            yield Path(os.path.normpath(link.parent.resolve() / os.readlink(link)))


def _name(artifact: Path) -> str:
    return f"{artifact.parent.name}/{artifact.name}"


def _new_record(
    hidden: Path, name: str, old: RunRecord | None, built: bool, start: Path, kept: frozenset[str]
) -> RunRecord:
    """Write `protected.txt` and return the record of what the hidden folder holds."""
    linked = hidden / _LINKED
    lines = linked.read_text(encoding="utf-8").splitlines() if linked.is_file() else []
    linked.unlink(missing_ok=True)
    rows = sorted({tuple(json.loads(line)) for line in lines})
    protected = tuple(row[0] for row in rows if row[1])
    if protected:
        text = _PROTECTED_SAYS + "\n".join(protected) + "\n"
        (hidden / PROTECTED).write_text(text, encoding="utf-8")
    artifacts = tuple(row[0] for row in rows)
    same = [] if old is None else [old, *(kept for _, kept in entries(hidden, damaged=True))]
    times = [one.finished for one in same if one.artifacts == artifacts and not built]
    return RunRecord(
        format=FORMAT,
        id=old.id if old else secrets.token_hex(8),
        name=name,
        finished=times[0] if times else datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        store=place_of(Path(rows[0][2]), hidden) if rows else None,
        started_in=place_of(start, hidden),
        artifacts=artifacts,
        protected=protected,
        files=tuple(sorted({RECORD, *_files(hidden)} - kept)),
    )


def _record_of(folder: Path, beside: Path) -> RunRecord:
    """Return the record of a run folder; of one that has none, or none to read, what is known."""
    with suppress(InputError):
        if record := read_record(folder):
            return record
    links = list(_links(folder))
    ours = [name for name in _files(folder) if name.startswith((f"{ARTIFACTS}/", "figures/"))]
    return RunRecord(
        format=FORMAT,
        id=secrets.token_hex(8),
        name=folder.name,
        finished=datetime.fromtimestamp((folder / _MARK).stat().st_mtime, UTC).isoformat(
            timespec="seconds"
        ),
        version="",
        store=place_of(links[0].parent.parent, folder) if links else None,
        started_in=place_of(Path.cwd(), folder),
        artifacts=tuple(sorted(_name(link) for link in links)),
        protected=(),
        files=(_MARK, RECORD, *BEFORE_RECORDS, *ours),
    )


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix()


def _rescue(foreign: Foreign, old: Path, final: Path) -> None:
    """Keep what the user put into the old folder while the new one took its place."""
    try:
        foreign.rescue(old, final)
    except OSError as error:
        kept = final.with_name(f"{final.name}.kept-{secrets.token_hex(2)}")
        (old / _MARK).unlink(missing_ok=True)
        old.rename(kept)
        raise InputError(
            f"files of yours could not be moved into the new folder ({error.strerror})",
            where=str(final),
            hint=f"The old folder is kept as it was: {kept}.",
        ) from error
