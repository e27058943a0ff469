"""The claims that the runs of a name started with: `runs/NAME/.claims.json`.

The file is written before the first step of the first run, so claims that were changed or added
after anything could be known are refused, and so are changes of the design that decides them:
seeds, arms, and the settings that determine rows and intervals. Without claims the file records
only that there are none. It stays when a run is killed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.studies.claims import Claims, claims_record
from inject.digest import digest
from inject.errors import InputError, first_names
from inject.files import write_text
from spikein.pipeline.build_graph import ExperimentGraph
from spikein.runs.folder import numbered

CLAIMS_FILE = ".claims.json"
_SHOWN = 12
"""Digits of a digest in a message."""


def claims_design(graph: ExperimentGraph) -> dict[str, Any]:
    """Return the design that decides an experiment's claims, by key: plain JSON values."""
    experiment = graph.experiment
    settings = experiment.analysis
    return {
        "seeds": sorted(experiment.seeds),
        "analysis.confidence": settings.confidence,
        "analysis.max_unscored": settings.max_unscored,
        "analysis.zero_copies": settings.zero_copies,
        "detect.tune_share": experiment.detect.tune_share,
        **{f"arms.{node.arm.name}": node.arm.labels for node in graph.nodes},
    }


def fix_claims(home: Path, claims: Claims, design: Mapping[str, Any]) -> None:
    """Record the claims of a run that starts.

    Args:
        home: the folder of the runs of its name.
        claims: of the experiment.
        design: that decides them, by key.

    Raises:
        InputError: for claims, or a design of claims, that differ from those recorded, or from no
            claims if a run of the name started without any.
    """
    path, now = home / CLAIMS_FILE, claims_record(claims, design)
    if not path.is_file() and not numbered(home):
        write_text(path, json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        hint = "Give the experiment another `name`."
        raise InputError(f"cannot be read: {error}", where=str(path), hint=hint) from None
    if set(before) != set(now) or before["format"] != now["format"]:
        before = now | {"claims": before}
    if before != now:
        then, present = (digest(each)[:_SHOWN] for each in (before, now))
        part = "claims" if before["claims"] != now["claims"] else "the design of the claims"
        compared = ("claims", "design") if before["claims"] and claims else ("claims",)
        changes = "; ".join(filter(None, (_changes(before[key], now[key]) for key in compared)))
        raise InputError(
            f"{part} changed after the run started: digest {then} then, {present} now ({changes})",
            where=str(path),
            hint="Give the experiment another `name`, or restore what changed (`git diff` shows "
            "changes of the file).",
        )


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the names that differ, by kind of difference."""
    changes = {
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "added": [name for name in now if name not in before],
        "removed": [name for name in before if name not in now],
    }
    return ", ".join(
        f"{change}: {first_names(names, 8)}" for change, names in changes.items() if names
    )
