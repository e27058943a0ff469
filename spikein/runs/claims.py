"""The claims that the runs of a name started with: `runs/NAME/.claims.json`.

The file is written before the first step of the first run, so claims that were changed after
anything could be known are refused. It stays when a run is killed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.studies.claims import Claims, plain_claims
from inject.digest import digest
from inject.errors import InputError, first_names
from inject.files import write_text
from spikein.runs.folder import numbered

CLAIMS_FILE = ".claims.json"
_SHOWN = 12
"""Digits of a digest in a message."""


def fix_claims(home: Path, claims: Claims) -> None:
    """Record the claims of a run that starts.

    Args:
        home: the folder of the runs of its name.
        claims: of the experiment.

    Raises:
        InputError: for claims that differ from those recorded, or from none if a run finished
            without any.
    """
    path, now = home / CLAIMS_FILE, plain_claims(claims)
    if path.is_file():
        before = _read(path)
    elif numbered(home):
        before = {}
    else:
        if now:
            write_text(path, json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        return
    if before == now:
        return
    digests = [digest(each)[:_SHOWN] for each in (before, now)]
    raise InputError(
        f"claims changed after the run started: digest {digests[0]} then, {digests[1]} now "
        f"({', '.join(_changes(before, now))})",
        where=str(path if before else home),
        hint="Give the experiment another `name`, or restore the claims (`git diff` shows what "
        "changed in the file).",
    )


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what happened to which claims."""
    names = {
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "added": [name for name in now if name not in before],
        "removed": [name for name in before if name not in now],
    }
    return [f"{what}: {first_names(each, 8)}" for what, each in names.items() if each]


def _read(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(values, dict):
            return values
        problem = "it is not a mapping"
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    raise InputError(
        f"cannot be read: {problem}",
        where=str(path),
        hint="Give the experiment another `name`.",
    )
