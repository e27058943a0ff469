"""Fetches public data sets into a folder, in the layout that the presets read.

A file of the layout is whole or absent, and its entry in `spikein-data.json` (where it comes from,
its SHA-256 and that of its source) is written right after it, so that a call that was cut off goes
on with the next file. A file that has an entry is checked and never fetched again; one that was
changed since is named, and nothing is done; one without an entry is somebody's own and stays.

What arrives whole is checked against the digest that the hub gives for the pinned commit. Of a
large source only the beginning is read, over the network; its rows are then those of the commit,
and its digest stays unknown. Files that were brought by hand into `downloads/` are taken first.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inject.digest import file_digest
from inject.errors import InputError, InputErrors, Unreachable
from inject.files import fsync, write_text
from inject.hub.snapshot import hide_progress_without_terminal
from inject.public_data.catalogue import DataSet
from inject.public_data.made_file import make_file
from inject.public_data.sources import Sources

MANIFEST = "spikein-data.json"
_HIDDEN = ".spikein-downloads"
_VERSION = 1


class FileState(NamedTuple):
    """What became of one file of the layout."""

    path: str
    state: str
    """`fetched`, `checked`, or `your own`."""
    rows: int | None
    size: int
    note: str = ""


def fetch(
    sets: Sequence[DataSet],
    folder: Path,
    *,
    on_file: Callable[[FileState], None] = lambda _: None,
) -> list[FileState]:
    """Fetch data sets; what is there already is checked.

    Args:
        sets: which; their terms have been agreed to.
        folder: where the layout lies; made where it is missing.
        on_file: called after each file.

    Raises:
        InputErrors: what could not be fetched, and why; all else was.
        InputError: a file was changed since it was fetched, or the folder cannot be used.
    """
    from filelock import FileLock

    _require_folder(folder)
    hidden = folder / _HIDDEN
    hide_progress_without_terminal()
    with FileLock(folder / f".{MANIFEST}.lock"):
        manifest = read_manifest(folder)
        _refuse_changed(sets, folder, manifest)
        # What a call that was killed has left.
        shutil.rmtree(hidden, ignore_errors=True)
        try:
            return _fetch(sets, folder, manifest, on_file)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)


def _fetch(
    sets: Sequence[DataSet],
    folder: Path,
    manifest: dict[str, Any],
    on_file: Callable[[FileState], None],
) -> list[FileState]:
    states: list[FileState] = []
    problems: list[InputError] = []
    out_of_reach: Unreachable | None = None
    missing: list[Sources] = []
    for data_set in sets:
        try:
            for file in data_set.files:
                sources = Sources(file, folder, folder / _HIDDEN)
                if out_of_reach and not sources.brought():
                    missing += [] if (folder / file.path).exists() else [sources]
                    continue
                try:
                    state = _one(data_set, sources, folder, manifest)
                except Unreachable as error:
                    out_of_reach = error
                    missing.append(sources)
                    continue
                states.append(state)
                on_file(state)
        except InputError as error:
            problems.append(error)
    if out_of_reach is not None:
        problems.append(_by_hand(out_of_reach, missing))
    if problems:
        done = f"{len(states)} of {sum(len(one.files) for one in sets)} files are in {folder}"
        raise InputErrors(problems, title=f"Not everything could be fetched; {done}:")
    return states


def _one(data_set: DataSet, sources: Sources, folder: Path, manifest: dict[str, Any]) -> FileState:
    """Make one file, or say what is there."""
    file = sources.file
    target = folder / file.path
    entry = manifest["files"].get(file.path)
    if target.is_dir():
        raise InputError("is a folder where a file belongs", where=str(target))
    if target.exists():
        size = target.stat().st_size
        if entry is None:
            return FileState(file.path, "your own", None, size, "not fetched here; kept")
        other = entry["commit"] != file.commit
        note = f"of commit {entry['commit']}; delete it to fetch {file.commit}" if other else ""
        return FileState(file.path, "checked", entry["rows"], size, note)
    _require_folder(target.parent)
    # Beside the downloads, so that whatever ends this process leaves nothing in the layout.
    temporary = folder / _HIDDEN / "made"
    temporary.parent.mkdir(exist_ok=True)
    rows = make_file(sources, temporary)
    fsync(temporary)
    os.replace(temporary, target)
    fsync(target.parent)
    manifest["files"][file.path] = {
        "bytes": target.stat().st_size,
        "commit": file.commit,
        "hub": file.hub,
        "licence": data_set.licence,
        "part": file.part(),
        "rows": rows,
        "sha256": file_digest(target),
        "sources": sources.facts,
    }
    write_text(
        folder / MANIFEST,
        json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n",
    )
    return FileState(file.path, "fetched", rows, target.stat().st_size, file.part())


def _require_folder(folder: Path) -> None:
    """Make a folder where there is none.

    Raises:
        InputError: something else is there, or none can be made there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, FileNotFoundError) as error:
        raise InputError(
            f"no folder can be made there ({error.strerror})",
            where=str(folder),
            hint="Give another folder with --to.",
        ) from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what was fetched into a folder: `files`, by their paths.

    Raises:
        InputError: the manifest is not what was written.
    """
    path = folder / MANIFEST
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["version"] == _VERSION and all(
            {"commit", "sha256", "rows"} <= entry.keys() for entry in value["files"].values()
        ):
            return dict(value)
    except FileNotFoundError:
        return {"version": _VERSION, "files": {}}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    raise InputError(
        "is not the list of files that `spikein data fetch` writes",
        where=str(path),
        hint="Delete it, and the files that it names, to fetch them again; or give another folder.",
    )


def _refuse_changed(sets: Sequence[DataSet], folder: Path, manifest: Mapping[str, Any]) -> None:
    """Name every file that is not what was fetched.

    Raises:
        InputErrors: there are any.
    """
    problems = []
    for path in (file.path for data_set in sets for file in data_set.files):
        entry, target = manifest["files"].get(path), folder / path
        if entry is not None and target.is_file() and file_digest(target) != entry["sha256"]:
            problems.append(
                InputError(
                    "was changed since it was fetched",
                    where=str(target),
                    hint="Delete it to fetch it again, or keep yours elsewhere.",
                )
            )
    if problems:
        raise InputErrors(problems, title="Nothing was fetched:")


def _by_hand(reason: Unreachable, missing: Sequence[Sources]) -> InputError:
    lines = [f"{reason}", "Without a network, bring these files, then give the same command:"]
    for sources in missing:
        hub, commit = sources.file.hub, sources.file.commit
        for source, place in sources.places.items():
            url = f"https://huggingface.co/datasets/{hub}/resolve/{commit}/{source}"
            lines.append(f"    {url}\n      as {place}")
    lines.append(
        "Or fetch into a folder on a machine with a network, and copy the folder: it is complete."
    )
    return InputError("\n    ".join(lines))
