"""What steps read of one another, where that is less than everything.

A facet is the digest of a part of an artifact, taken when it is built. A step that declares to read
a facet alone is not built again when the rest of its input changes: another `tune_share` draws no
plan again, and an audit rule that drops no further document trains no model again. Each facet names
what it leaves out, so that whatever is added to an artifact counts.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from inject.corpus.corpus import FACTS_FILE
from inject.corpus.imported_files import PLACES
from inject.digest import digest, file_digest
from inject.examples.example import (
    EXAMPLES_FILE,
    HELD_OUT_FILE,
    Example,
    read_examples,
    read_held_out,
)
from inject.model_folder import LOG_FILE
from inject.stream.audit import AUDIT_FILE, read_audit
from inject.stream.exposures import EXPOSURES_FILE
from spikein.store.manifest import MANIFEST, Reading

Facets = Mapping[str, Callable[[Path], str]]

_REPORTS = ("mixture", "shares")
"""What `corpus.json` says of the sources, which only the page reads."""

UNSPLIT = Reading(facet="unsplit", files=(EXAMPLES_FILE,))
"""The rows in their order, with their sides, but not their split into tune and test."""
TEXTS = Reading(facet="texts", files=(EXAMPLES_FILE,))
"""Ids and texts in their order."""
AUDITED = Reading(facet="audited", files=(EXAMPLES_FILE, HELD_OUT_FILE))
"""As `UNSPLIT`, and the held-out rows."""
HELD_OUT = Reading(facet="held_out", files=(HELD_OUT_FILE,))
"""The held-out rows in their order."""
TOKENS = Reading(facet="tokens")
"""The corpus without what it says of its sources and of what was left out."""
PASSED = Reading(facet="passed", files=(AUDIT_FILE,))
"""Whether the audit passed."""
EXPOSURES = Reading(files=(EXPOSURES_FILE,))
"""What a model was fed."""
RECORDS = Reading(files=(EXPOSURES_FILE, LOG_FILE))
"""What a model was fed, and how its training went."""


def _unsplit(folder: Path) -> str:
    return _rows_digest(read_examples(folder), _without_split)


def _texts(folder: Path) -> str:
    return _rows_digest(read_examples(folder), lambda row: [row.example_id, row.text])


def _held_out(folder: Path) -> str:
    return _rows_digest(read_held_out(folder), _without_split)


def _audited(folder: Path) -> str:
    return digest([_unsplit(folder), _held_out(folder)])


def _without_split(row: Example) -> object:
    return {name: value for name, value in asdict(row).items() if name != "split"}


def _rows_digest(rows: Sequence[Example], plain: Callable[[Example], object]) -> str:
    state = hashlib.sha256()
    for row in rows:
        state.update(json.dumps(plain(row), sort_keys=True).encode())
        state.update(b"\n")
    return state.hexdigest()


def _tokens(folder: Path) -> str:
    facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
    kept = {name: value for name, value in facts.items() if name not in _REPORTS}
    # What else the files of an import hold, behind the tokens that are used, is no part of them.
    kept["shards"] = [
        {name: value for name, value in shard.items() if name != "file_sha256"}
        for shard in facts["shards"]
    ]
    shards = {shard["name"] for shard in facts["shards"]}
    files = {
        name: file_digest(path)
        for path in folder.rglob("*")
        if path.is_file()
        and (name := path.relative_to(folder).as_posix())
        not in (FACTS_FILE, MANIFEST, PLACES, *shards)
        and not name.startswith("overlaps.")
    }
    return digest({"facts": kept, "files": files})


def _passed(folder: Path) -> str:
    return digest(read_audit(folder).passed)


OF_EXAMPLES: Facets = {
    "unsplit": _unsplit,
    "texts": _texts,
    "audited": _audited,
    "held_out": _held_out,
}
OF_CORPUS: Facets = {"tokens": _tokens}
OF_AUDIT: Facets = {"passed": _passed}
