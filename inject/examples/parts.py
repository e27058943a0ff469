"""What steps read of a pool of examples, where that is less than everything.

A facet is the digest of a part of an artifact, taken when it is built. A step that declares to read
a facet alone is not built again when the rest of its input changes: another `tune_share` draws no
plan again. Each facet names what it leaves out, so that whatever is added to an artifact counts.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from inject.digest import digest
from inject.examples.example import (
    EXAMPLES_FILE,
    HELD_OUT_FILE,
    Example,
    read_examples,
    read_held_out,
)
from inject.step import Reading

UNSPLIT = Reading(facet="unsplit", files=(EXAMPLES_FILE,))
"""The rows in their order, with their sides, but not their split into tune and test."""
TEXTS = Reading(facet="texts", files=(EXAMPLES_FILE,))
"""Ids and texts in their order."""
AUDITED = Reading(facet="audited", files=(EXAMPLES_FILE, HELD_OUT_FILE))
"""As `UNSPLIT`, and the held-out rows."""
HELD_OUT = Reading(facet="held_out", files=(HELD_OUT_FILE,))
"""The held-out rows in their order."""

OF_EXAMPLES: Mapping[str, str] = {
    name: f"{__name__}:{name}" for name in ("unsplit", "texts", "audited", "held_out")
}
"""The facets of a pool, for `Step.facets`."""


def unsplit(folder: Path) -> str:
    """Return the digest of what `UNSPLIT` names."""
    return _rows_digest(read_examples(folder), _without_split)


def texts(folder: Path) -> str:
    """Return the digest of what `TEXTS` names."""
    return _rows_digest(read_examples(folder), lambda row: [row.example_id, row.text])


def held_out(folder: Path) -> str:
    """Return the digest of what `HELD_OUT` names."""
    return _rows_digest(read_held_out(folder), _without_split)


def audited(folder: Path) -> str:
    """Return the digest of what `AUDITED` names."""
    return digest([unsplit(folder), held_out(folder)])


def _without_split(row: Example) -> object:
    return {name: value for name, value in asdict(row).items() if name != "split"}


def _rows_digest(rows: Sequence[Example], plain: Callable[[Example], object]) -> str:
    state = hashlib.sha256()
    for row in rows:
        state.update(json.dumps(plain(row), sort_keys=True).encode())
        state.update(b"\n")
    return state.hexdigest()
