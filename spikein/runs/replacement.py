"""Making or replacing a run folder in one step: readers see the old one or the whole new one.

A run folder is filled in a hidden sibling, flushed to disk, and swapped with the old one: in a
single step where the system can (Linux: `renameat2` with RENAME_EXCHANGE), else by two renames.
What the user put into the folder stays, and earlier results that differ go to its `history/`.
"""

import ctypes
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from inject.digest import digest
from inject.errors import InputError
from inject.files import fsync
from spikein import __version__
from spikein.runs.folder import (
    LINKED,
    MARK,
    artifact_links,
    artifact_name,
    check_replaceable,
    referenced_artifacts,
)
from spikein.runs.history import (
    ARTIFACTS,
    FILES_BEFORE_RECORDS,
    UserFiles,
    archive_results,
    earlier_results,
)
from spikein.runs.record import (
    FORMAT,
    RECORD,
    RunRecord,
    place_of,
    read_record,
    table_digests,
    write_record,
)
from spikein.store.filesystem import delete_tree

PROTECTED = f"{ARTIFACTS}/protected.txt"
_PROTECTED_SAYS = """\
These artifacts hold texts of protected datasets, which must not be revealed in plain text.
No link leads to them from here, so that this folder can be copied and packed. They lie in the
store that run.json names: do not share those.

"""
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
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
) -> PublishedRun:
    """Make or replace the run folder `name` in one step.

    Args:
        runs_root: the folder of all runs.
        name: a safe folder name (experiment names are).
        fill: writes everything into the hidden folder it is given.
        built: whether the run built anything; else equal results keep the time of their record.
        started_in: where relative paths of the experiment start; the working directory when None.
        announce: called with the folder, its record, and the names of all artifacts that it and
            its history rest on, before the folder can be seen.

    Raises:
        InputError: when a folder of that name exists that is no run folder.
    """
    final = runs_root / name
    leases = runs_root / ".leases"
    leases.mkdir(parents=True, exist_ok=True)
    with FileLock(leases / f"{name}.lock"):
        check_replaceable(final)
        key = digest(name)[:12]
        for stale in runs_root.glob(f".{key}.*.tmp"):
            delete_tree(stale)
        hidden = runs_root / f".{key}.{secrets.token_hex(4)}.tmp"
        hidden.mkdir()
        try:
            (hidden / MARK).touch()
            fill(hidden)
            old = _record_of(final, hidden) if final.exists() else None
            user_files = UserFiles(frozenset(old.files) if old else frozenset())
            if old is not None:
                user_files.link_all(final, hidden)
            record = _new_record(
                hidden, name, old, built, started_in or Path.cwd(), user_files.names
            )
            earlier = None
            if old is not None:
                earlier = archive_results(final, hidden, earlier=old, record=record)
            write_record(hidden, record)
            flush_tree(hidden)
            if announce is not None:
                announce(final, record, frozenset(referenced_artifacts(hidden, damaged=True)))
            swap(hidden, final)
            if old is not None and hidden.exists():
                move_rest(user_files, hidden, final)
        finally:
            delete_tree(hidden)
        fsync(runs_root)
    return PublishedRun(folder=final, record=record, earlier=final / earlier if earlier else None)


def _new_record(
    hidden: Path, name: str, old: RunRecord | None, built: bool, start: Path, kept: frozenset[str]
) -> RunRecord:
    """Write `protected.txt` and return the record of what the hidden folder holds."""
    linked = hidden / LINKED
    lines = linked.read_text(encoding="utf-8").splitlines() if linked.is_file() else []
    linked.unlink(missing_ok=True)
    rows = sorted({tuple(json.loads(line)) for line in lines})
    protected = tuple(row[0] for row in rows if row[1])
    if protected:
        text = _PROTECTED_SAYS + "\n".join(protected) + "\n"
        (hidden / PROTECTED).write_text(text, encoding="utf-8")
    artifacts = tuple(row[0] for row in rows)
    same = (
        [] if old is None else [old, *(kept for _, kept in earlier_results(hidden, damaged=True))]
    )
    times = [one.finished for one in same if one.artifacts == artifacts and not built]
    files = tuple(sorted({RECORD, *_files(hidden)} - kept))
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
        files=files,
        digests=table_digests(hidden, files),
    )


def _record_of(folder: Path, beside: Path) -> RunRecord:
    """Return the record of a run folder; made from its files where it has none that can be read."""
    with suppress(InputError):
        if record := read_record(folder):
            return record
    links = list(artifact_links(folder))
    ours = [name for name in _files(folder) if name.startswith((f"{ARTIFACTS}/", "figures/"))]
    return RunRecord(
        format=FORMAT,
        id=secrets.token_hex(8),
        name=folder.name,
        finished=datetime.fromtimestamp((folder / MARK).stat().st_mtime, UTC).isoformat(
            timespec="seconds"
        ),
        version="",
        store=place_of(links[0].parent.parent, folder) if links else None,
        started_in=place_of(Path.cwd(), folder),
        artifacts=tuple(sorted(artifact_name(link) for link in links)),
        protected=(),
        files=(MARK, RECORD, *FILES_BEFORE_RECORDS, *ours),
    )


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix()


def move_rest(user_files: UserFiles, old: Path, final: Path) -> None:
    """Move what the user put into the old folder while the new one took its place.

    Raises:
        InputError: something cannot be moved; the old folder is kept, and named.
    """
    try:
        user_files.move_rest(old, final)
    except OSError as error:
        kept = final.with_name(f"{final.name}.kept-{secrets.token_hex(2)}")
        (old / MARK).unlink(missing_ok=True)
        old.rename(kept)
        raise InputError(
            f"files of yours could not be moved into the new folder ({error.strerror})",
            where=str(final),
            hint=f"The old folder is kept as it was: {kept}.",
        ) from error


def flush_tree(folder: Path) -> None:
    """Flush every file and folder below `folder` to disk; files without read permission are
    skipped."""
    for path in folder.rglob("*"):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            with suppress(PermissionError):
                fsync(path)
    fsync(folder)


def swap(new: Path, final: Path) -> None:
    """Put `new` in the place of `final`; the old folder, if any, ends at `new`'s name."""
    if not final.exists():
        new.rename(final)
        return
    if _exchange(new, final):
        return
    aside = new.with_name(f"{new.name.removesuffix('.tmp')}.old.tmp")
    final.rename(aside)
    try:
        new.rename(final)
    except OSError:
        aside.rename(final)
        raise
    aside.rename(new)


def _exchange(one: Path, other: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        call = ctypes.CDLL(None, use_errno=True).renameat2
        paths = os.fsencode(one), os.fsencode(other)
        return bool(call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
    return False
