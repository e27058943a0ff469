"""Publish a run: a new numbered folder, `runs/NAME/N/`, that is complete or absent.

A run's folder is filled in a hidden sibling, flushed to disk and renamed; nothing is ever replaced,
and no user file is touched. `runs/NAME/latest` leads to the newest run. If its files equal those of
the new run, it is the result, and no other run is published. Differences from the previous run are
reported: settings, or the inputs of the results.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from inject.errors import InputError
from inject.files import fsync, fsync_all
from inject.verified_files import IntegrityError, file_digests, require_files
from spikein import __version__
from spikein.config.former_keys import with_current_keys
from spikein.config.yaml_document import flow_text, read_document
from spikein.runs.folder import ARTIFACTS, LATEST, LINKED, check_home, numbered
from spikein.runs.record import FORMAT, RECORD, RunRecord, place_of, read_record, write_record
from spikein.store.filesystem import delete_tree

MAX_CHANGES = 8
_ABSENT = "absent"
PROTECTED = f"{ARTIFACTS}/protected.txt"
_PROTECTED_SAYS = """\
These artifacts contain texts of protected datasets, which must not be revealed in plain text.
No link leads to them from here, so that this folder can be copied and packed. They are in the
store that run.json names: do not share them.

"""


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """A run that was published, or that existed already."""

    folder: Path
    record: RunRecord
    earlier: Path | None
    """The previous run, if its artifacts differ; else None."""


def publish_run(
    runs_root: Path,
    name: str,
    fill: Callable[[Path], None],
    *,
    built: bool = True,
    announce: Callable[[Path, RunRecord], None] | None = None,
    claims: str | None = None,
) -> PublishedRun:
    """Publish a run of the experiment `name`.

    Args:
        runs_root: the folder of all runs.
        name: a safe folder name (experiment names are).
        fill: writes everything into the given hidden folder.
        built: whether the run built anything; else equal results keep the time of their record.
        announce: called with the folder and its record before the folder is visible.
        claims: the digest of the experiment's claims and their design; None without any.

    Raises:
        InputError: for an existing folder of that name that this version of spikein did not write.
    """
    home = runs_root / name
    leases = runs_root / ".leases"
    leases.mkdir(parents=True, exist_ok=True)
    with FileLock(leases / f"{name}.lock"):
        check_home(home)
        home.mkdir(exist_ok=True)
        for stale in home.glob(".*.tmp"):
            delete_tree(stale)
        hidden = home / f".{secrets.token_hex(4)}.tmp"
        hidden.mkdir()
        try:
            fill(hidden)
            before = _find_latest(home)
            record = _record(hidden, name, before and before[1], built)
            record = record.model_copy(update={"claims": claims})
            if before is not None and _is_published(*before, record):
                return PublishedRun(folder=before[0], record=before[1], earlier=None)
            write_record(hidden, record)
            paths = [path for path in hidden.rglob("*") if not path.is_symlink()]
            fsync_all([*paths, hidden])
            number = max((int(folder.name) for folder in numbered(home)), default=0) + 1
            final = home / str(number)
            if announce is not None:
                announce(final, record)
            hidden.rename(final)
            _point(home / LATEST, str(number))
        finally:
            if hidden.exists():
                delete_tree(hidden)
        fsync(home)
    earlier = before[0] if before and before[1].artifacts != record.artifacts else None
    return PublishedRun(folder=final, record=record, earlier=earlier)


def _find_latest(home: Path) -> tuple[Path, RunRecord] | None:
    """Return the newest readable run; a damaged one is skipped, and stays."""
    for folder in reversed(numbered(home)):
        with suppress(InputError):
            return folder, read_record(folder)
    return None


def _is_published(folder: Path, record: RunRecord, new_record: RunRecord) -> bool:
    """Return whether a run's folder equals the new one, is complete, and finds its store."""
    if (record.artifacts, record.digests) != (new_record.artifacts, new_record.digests):
        return False
    old, new = record.store, new_record.store
    if old and new and old.relative != new.relative and old.absolute != new.absolute:
        return False
    with suppress(IntegrityError):
        require_files(folder, record.digests)
        return True
    return False


def _record(hidden: Path, name: str, before: RunRecord | None, built: bool) -> RunRecord:
    """Write `protected.txt` and return the record of the hidden folder's content."""
    linked = hidden / LINKED
    lines = linked.read_text(encoding="utf-8").splitlines() if linked.is_file() else []
    linked.unlink(missing_ok=True)
    rows = sorted({tuple(json.loads(line)) for line in lines})
    protected = tuple(row[0] for row in rows if row[1])
    if protected:
        text = _PROTECTED_SAYS + "\n".join(protected) + "\n"
        (hidden / PROTECTED).write_text(text, encoding="utf-8")
    artifacts = tuple(row[0] for row in rows)
    is_unchanged = before is not None and before.artifacts == artifacts and not built
    return RunRecord(
        format=FORMAT,
        id=secrets.token_hex(8),
        name=name,
        finished=before.finished
        if is_unchanged and before
        else datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        store=place_of(Path(rows[0][2]), hidden) if rows else None,
        started_in=place_of(Path.cwd(), hidden),
        artifacts=artifacts,
        protected=protected,
        digests=file_digests(hidden, sorted({*_files(hidden)} - {RECORD})),
    )


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_relative_to(folder / ARTIFACTS):
            yield path.relative_to(folder).as_posix()


def _point(link: Path, target: str) -> None:
    """Create or redirect a link atomically."""
    temporary_link = link.with_name(f".{link.name}.{secrets.token_hex(4)}")
    temporary_link.symlink_to(target)
    os.replace(temporary_link, link)


def result_changes(published: PublishedRun, file: str) -> list[str]:
    """Return the differences from the results of the previous run; [] if there are none.

    Args:
        published: the run.
        file: the name of the experiment file in it.
    """
    if published.earlier is None:
        return []
    earlier = read_record(published.earlier)
    changes = setting_changes(published.earlier / file, published.folder / file)
    if changes:
        more = len(changes) - MAX_CHANGES
        differences = "; ".join(map(str, changes[:MAX_CHANGES]))
        differences += f"; and {more} more." if more > 0 else "."
    else:
        differing = set(earlier.artifacts) ^ set(published.record.artifacts)
        kinds = sorted({name.partition("/")[0] for name in differing})
        differences = (
            "No setting differs; data, code or libraries do, and changed the artifacts of "
            f"{', '.join(kinds)}."
        )
    when = earlier.finished.removesuffix("+00:00").replace("T", " ")
    return [f"Other results than those of {when} UTC ({published.earlier}): {differences}"]


class SettingChange(NamedTuple):
    """A setting that differs between two experiments."""

    key: str
    """Dotted."""
    old: str
    """The value as YAML writes it; `absent` if there is none."""
    new: str

    def __str__(self) -> str:
        return f"{self.key}: {self.old} → {self.new}"


def setting_changes(earlier: Path, now: Path) -> list[SettingChange]:
    """Return the settings that differ between two experiment files."""
    old, new = (dict(_flatten(_read(path))) for path in (earlier, now))
    keys = [*new, *(key for key in old if key not in new)]
    return [
        SettingChange(key, old.get(key, _ABSENT), new.get(key, _ABSENT))
        for key in keys
        if old.get(key, _ABSENT) != new.get(key, _ABSENT)
    ]


def _read(path: Path) -> Any:
    with suppress(InputError):
        return with_current_keys(read_document(path), notes=False).values
    return {}


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted keys and values as text; a list is one value unless it contains mappings."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _flatten(below, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, below in enumerate(value):
            yield from _flatten(below, f"{prefix}.{number}")
    else:
        yield prefix, flow_text(value)
