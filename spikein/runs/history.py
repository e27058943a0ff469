"""What stays of a run folder when a new one replaces it: files of the user, and earlier results.

Files that spikein did not write stay under their names. Results that differ from the new ones go
to `history/<when>-<digest8>/`, a run folder of its own: page, tables, links and record. Files are
hard-linked: this costs no space, and both folders are whole at any moment.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from inject.digest import digest
from inject.errors import InputError
from spikein.runs.record import RunRecord, read_record, write_record
from spikein.store.filesystem import delete_tree

HISTORY = "history"
ARTIFACTS = "artifacts"

_TABLES = (
    "metrics", "differences", "scores", "examples", "exposures", "accuracy", "trajectory", "fading",
)  # fmt: skip
FILES_BEFORE_RECORDS = ("report.html", "experiment.yaml", *(f"{name}.parquet" for name in _TABLES))
"""What spikein wrote into run folders before they had a record, besides figures and links."""


class _LinkedFile(NamedTuple):
    """A file of the user, linked into the new folder."""

    inode: int
    path: Path


class UserFiles:
    """The files of a run folder that spikein did not write; they stay when it is replaced."""

    def __init__(self, ours: frozenset[str]) -> None:
        self._ours = ours
        self._shared = {str(parent) for name in ours for parent in Path(name).parents}
        self._linked: dict[str, _LinkedFile] = {}

    @property
    def names(self) -> frozenset[str]:
        """Their names in the new folder."""
        return frozenset(linked.path.as_posix() for linked in self._linked.values())

    def link_all(self, old: Path, new: Path) -> None:
        """Link them into `new` before it takes the place of `old`; `move_rest` moves the others."""
        made: list[Path] = []
        for path, name in self._files(old):
            target = _free(new / name)
            with suppress(OSError):
                made += _make_parents(new, name)
                if path.is_dir() and not path.is_symlink():
                    (new / name).mkdir()
                    made.append(Path(name))
                    continue
                if path.is_symlink():
                    target.symlink_to(os.readlink(path))
                elif path.is_file():
                    os.link(path, target, follow_symlinks=False)
                else:
                    continue
                self._linked[name] = _LinkedFile(path.lstat().st_ino, target.relative_to(new))
        # Last, since a folder of the user may be read-only.
        for folder in reversed(made):
            with suppress(OSError):
                shutil.copystat(old / folder, new / folder)

    def move_rest(self, old: Path, final: Path) -> None:
        """Move the files that were put into `old` since, or could not be linked.

        Raises:
            OSError: when something cannot be moved.
        """
        for path, name in list(self._files(old)):
            linked = self._linked.get(name)
            if path.is_dir() and not path.is_symlink():
                (final / name).mkdir(parents=True, exist_ok=True)
            elif linked is None or linked.inode != path.lstat().st_ino:
                _make_parents(final, name)
                os.replace(path, final / linked.path if linked else _free(final / name))

    def _files(self, folder: Path) -> Iterator[tuple[Path, str]]:
        """Yield files, links and empty folders that are not ours."""
        for path, folders, files in os.walk(folder):
            for entry in (*files, *folders):
                found = Path(path) / entry
                name = found.relative_to(folder).as_posix()
                is_folder = entry in folders and not found.is_symlink()
                if name in self._ours or (
                    is_folder and (name in self._shared or any(found.iterdir()))
                ):
                    continue
                yield found, name


def archive_results(old: Path, new: Path, *, earlier: RunRecord, record: RunRecord) -> str | None:
    """Put the results of `old` into the history of `new`, unless they are equal to its own.

    Args:
        old: the run folder as it is.
        new: the hidden folder that will take its place; it has the files of the user already.
        earlier: the record of `old`.
        record: the record of `new`.

    Returns:
        The path of the archived results, relative to the run folder; None where they are equal.
    """
    for entry, kept in earlier_results(new, damaged=True):
        if kept.artifacts == record.artifacts and kept.finished == record.finished:
            delete_tree(entry)
    if earlier.artifacts == record.artifacts:
        return None
    when = datetime.fromisoformat(earlier.finished)
    name = f"{HISTORY}/{when:%Y%m%d-%H%M%S}-{digest(list(earlier.artifacts))[:8]}"
    entry = new / name
    if entry.exists():
        return name
    for file in earlier.files:
        source, target = old / file, entry / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            aim = os.path.normpath(source.parent.resolve() / os.readlink(source))
            target.symlink_to(os.path.relpath(aim, target.parent.resolve()))
        elif source.is_file():
            _link_or_copy(source, target)
    write_record(entry, earlier.moved(old, entry))
    return name


def earlier_results(folder: Path, *, damaged: bool = False) -> list[tuple[Path, RunRecord]]:
    """Return the earlier results that a run folder keeps, the oldest first.

    Args:
        folder: the run's folder.
        damaged: skip those whose record cannot be read.

    Raises:
        InputError: when a record cannot be read.
    """
    found = []
    for path in sorted((folder / HISTORY).glob("*")):
        if path.is_symlink() or not path.is_dir():
            continue
        try:
            record = read_record(path)
        except InputError:
            if not damaged:
                raise
            continue
        if record is not None:
            found.append((path, record))
    return found


def _make_parents(new: Path, name: str) -> list[Path]:
    """Make the folders above a file; return those that were not there."""
    lacking = [parent for parent in Path(name).parents if not (new / parent).is_dir()]
    for parent in reversed(lacking):
        (new / parent).mkdir()
    return lacking[::-1]


def _free(path: Path) -> Path:
    """Return `path`, or a name beside it where a file of spikein has that name now."""
    candidate, number = path, 1
    while candidate.exists() or candidate.is_symlink():
        candidate = path.with_name(f"{path.name}.kept-{number}")
        number += 1
    return candidate


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
