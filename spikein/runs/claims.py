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
    if not path.is_file() and not numbered(home):
        if now:
            write_text(path, json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        hint = "Give the experiment another `name`."
        raise InputError(f"cannot be read: {error}", where=str(path), hint=hint) from None
    if before != now:
        then, present = (digest(each)[:_SHOWN] for each in (before, now))
        raise InputError(
            f"claims changed after the run started: digest {then} then, {present} now "
            f"({_changes(before, now)})",
            where=str(path),
            hint="Give the experiment another `name`, or restore the claims (`git diff` shows "
            "what changed in the file).",
        )


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the claims that changed, were added or were removed."""
    changes = {
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "added": [name for name in now if name not in before],
        "removed": [name for name in before if name not in now],
    }
    return ", ".join(
        f"{change}: {first_names(names, 8)}" for change, names in changes.items() if names
    )
