"""The record of a run folder: `run.json`.

It names the store and the folder that the run was started from, both as an absolute path and
relative to the run folder, so that the folder can be read from anywhere, and so that a tree
with runs, store and data can be moved as one. It lists every artifact of the run, including those
with protected texts, and the digests of all files that spikein wrote, and of itself: record, tables
and settings are compared with them before they are read.
"""

import json
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

from inject.digest import digest
from inject.errors import InputError
from inject.files import write_text
from inject.verified_files import IntegrityError, require_files

RECORD = "run.json"
EXPERIMENT = "experiment.yaml"
"""The resolved experiment in a run's folder."""
FORMAT = 3
_FORMATS = (2, FORMAT)
"""Records of format 2 have no digest of themselves, and are read without this check."""
_DIGEST = "digest"
_READ_AGAIN = (".parquet", ".yaml")


def _stays_below(name: str) -> str:
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"{name!r} leads out of the run's folder")
    return name


def _is_time(text: str) -> str:
    if datetime.fromisoformat(text).utcoffset() is None:
        raise ValueError(f"{text!r} has no time zone")
    return text


FileName = Annotated[str, AfterValidator(_stays_below)]
ArtifactName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]+/[^/]+-[0-9a-f]{12}$")]


class RecordedFolder(BaseModel):
    """A folder, as an absolute path and relative to the run folder."""

    model_config = ConfigDict(frozen=True)

    absolute: str
    relative: str


class RunRecord(BaseModel):
    """The content of `run.json`."""

    model_config = ConfigDict(frozen=True)

    format: int
    id: str
    """Stays with the folder when it is moved."""
    name: str
    """The experiment's name."""
    finished: Annotated[str, AfterValidator(_is_time)]
    """UTC, ISO 8601, whole seconds: the time when its last step was built."""
    version: str
    """Of spikein."""
    store: RecordedFolder | None
    """None if the run has no artifact."""
    started_in: RecordedFolder
    """Relative paths in `experiment.yaml` start here."""
    claims: str | None = None
    """Digest of the claims and their design, recorded when the run started; None without any."""
    artifacts: tuple[ArtifactName, ...]
    """`kind/label-digest12` of all its artifacts, in the order of names."""
    protected: tuple[ArtifactName, ...]
    """Artifacts with texts that must not be shared; no link leads to them."""
    digests: dict[FileName, tuple[int, str]]
    """Size and digest of each file that spikein wrote."""


def place_of(target: Path, folder: Path) -> RecordedFolder:
    """Return the record of another folder in a run folder."""
    real = os.path.realpath(target)
    return RecordedFolder(
        absolute=_decode(real), relative=_decode(os.path.relpath(real, os.path.realpath(folder)))
    )


def read_record(folder: Path) -> RunRecord:
    """Return the record of a run folder.

    Raises:
        InputError: for a record that is unreadable, changed, or from another version.
    """
    path = folder / RECORD
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(values, dict) and values.get("format") not in _FORMATS:
            raise InputError(
                f"the run was made by another version of spikein ({values.get('version')}, format "
                f"{values.get('format')} of run folders; this one reads "
                f"{' and '.join(map(str, _FORMATS))})",
                where=str(folder),
                hint=f"Its page and tables are unchanged ({folder / 'report.html'}). For "
                f"anything else run it again: spikein run {folder / EXPERIMENT}",
            )
        if isinstance(values, dict) and (values["format"] == FORMAT or _DIGEST in values):
            stated = values.pop(_DIGEST, None)
            if digest(values) != stated:
                raise _read_error(path, "its digest is wrong: it was changed")
        return RunRecord.model_validate(values)
    except ValidationError as error:
        details = error.errors()[0]
        key = ".".join(str(part) for part in details["loc"])
        raise _read_error(path, f"{key}: {details['msg']}" if key else details["msg"]) from None
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise _read_error(path, str(error)) from None


def write_record(folder: Path, record: RunRecord) -> None:
    """Write `run.json`, with its own digest."""
    values = record.model_dump(mode="json")
    text = json.dumps({**values, _DIGEST: digest(values)}, indent=1, ensure_ascii=False)
    write_text(folder / RECORD, text + "\n")


def checked_record(folder: Path, *names: str) -> RunRecord:
    """Return the record of a run folder after verifying its files.

    Args:
        folder: the run's folder.
        names: of the files to read; none for every table.

    Raises:
        InputError: as `read_record`; or naming a damaged file.
    """
    record = read_record(folder)
    try:
        chosen = {
            name: of
            for name, of in record.digests.items()
            if (name in names if names else Path(name).suffix in _READ_AGAIN)
        }
        require_files(folder, chosen)
    except IntegrityError as damage:
        raise InputError(
            f"the run's folder is damaged: {damage}",
            where=str(folder),
            hint="Run the experiment again to write another from the store.",
        ) from None
    return record


def resolve_places(folder: Path, record: RunRecord) -> tuple[Path | None, Path]:
    """Return the store and the starting folder of a run, even if it was moved.

    The places relative to the run folder count if the store is found there (nothing was moved, or
    everything together), else the absolute ones. A store is found if it contains one of the run's
    artifacts; if none is left anywhere, any existing folder is accepted.
    """
    near, far = _join_place(folder, record.started_in), Path(record.started_in.absolute)
    if record.store is None:
        return None, next((path for path in (near, far) if path.is_dir()), far)
    stores = _join_place(folder, record.store), Path(record.store.absolute)
    existing = [store for store in stores if holds_any(store, record.artifacts)]
    store = next(iter(existing or [path for path in stores if path.is_dir()]), None)
    order = (near, far) if store == stores[0] else (far, near)
    return store, next((path for path in order if path.is_dir()), order[0])


def holds_any(store: Path, artifacts: Iterable[str]) -> bool:
    """Return whether a store contains one of these artifacts."""
    return any((store / name).is_dir() for name in artifacts)


def _join_place(folder: Path, place: RecordedFolder) -> Path:
    return Path(os.path.normpath(folder.resolve() / place.relative))


def _decode(path: str) -> str:
    # JSON text is Unicode. A name in another encoding is only found by its relative path.
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _read_error(path: Path, problem: str) -> InputError:
    return InputError(
        f"cannot be read: {problem}",
        where=str(path),
        hint="Run the experiment again to write another from the store; or delete the folder.",
    )
