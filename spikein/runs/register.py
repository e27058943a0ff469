"""The store's register of the run folders that were made from it: `<store>/.runs/`, a file each.

`spikein gc` keeps what these folders rest on wherever they lie. An entry also lists the run's
artifacts, so that a folder that was moved away, or lies on a disk that is not mounted, loses
nothing. An entry is written before its run folder is visible: a kill in between leaves an entry
without a folder, which keeps too much and never too little.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from inject.digest import digest
from inject.files import write_text
from spikein.store.manifest import StoreError

REGISTER = ".runs"


@dataclass(frozen=True, kw_only=True)
class RegisteredRun:
    """One entry."""

    entry: Path
    """Its file."""
    id: str
    """Of the run folder (`RunRecord.id`); empty where it has no record."""
    path: Path
    """Where the run folder was published."""
    artifacts: tuple[str, ...]
    """`kind/label-digest12` of what it and its earlier results rest on."""


def register_run(store: Path, folder: Path, *, id: str, artifacts: Iterable[str]) -> None:
    """Write down that a run folder rests on artifacts of the store.

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
    found = []
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
        found.append(run)
    return sorted(found, key=lambda run: (str(run.path), run.id))


def _entry(store: Path, id: str, path: str) -> Path:
    return store / REGISTER / f"{digest([id, path])[:16]}.json"
