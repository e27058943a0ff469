"""Runs that an earlier version of spikein made: the one place that says what to do with them.

Their files are not damaged, so nothing may call them that. Whatever reads the artifacts of a run
(`spikein report`, `audit`, `export`) calls `require_current_version` first; `spikein status` shows
`earlier_version_note`. `spikein.load_run` reads the tables of the folder alone, and so needs no
more than that these have the columns of this version.
"""

from contextlib import suppress
from pathlib import Path

from inject.errors import InputError
from spikein import __version__
from spikein.runs.folder import linked_artifacts
from spikein.runs.record import read_record
from spikein.store.manifest import StoreError, read_manifest


def require_current_version(run_folder: Path, store: Path | None = None) -> None:
    """Check that this version can read the artifacts of a run.

    Args:
        run_folder: the run's folder.
        store: the store's folder; None for the one that the run remembers.

    Raises:
        InputError: an earlier version made the run: says what stays readable, and what to do. Or
            the run's record cannot be read.
    """
    if not _has_earlier_artifacts(run_folder, store):
        return
    record = read_record(run_folder)
    version = f" ({record.version})" if record and record.version else ""
    raise InputError(
        f"the run was made by an earlier version of spikein{version}, and this one, {__version__}, "
        "cannot read its artifacts",
        where=str(run_folder),
        hint=f"Its page and tables stay as they were made ({run_folder / 'report.html'}). To audit "
        "or export it, or to make its page again, run it again: "
        f"spikein run {run_folder / 'experiment.yaml'}",
    )


def earlier_version_note(run_folder: Path) -> str | None:
    """Return what is to be done with a run that an earlier version made; None for other runs.

    Raises:
        InputError: the run's record cannot be read.
    """
    if not _has_earlier_artifacts(run_folder, None):
        return None
    return "made by an earlier version; its page stays, run it again for anything else"


def _has_earlier_artifacts(run_folder: Path, store: Path | None) -> bool:
    for folder in linked_artifacts(run_folder, store):
        # Whatever is missing or damaged is reported where it is read.
        with suppress(StoreError, OSError):
            if read_manifest(folder).earlier:
                return True
    return False
