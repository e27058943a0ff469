"""Passes on the documents that overlap with no example, and records the overlaps.

Artifact files: `overlaps.parquet` (one row per offence) and `overlaps.json` (the rules, and
counts).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from inject.corpus.background.document import Document
from inject.errors import InputError, first_names, reading
from inject.examples.example import Example
from inject.overlap.index import NGRAM, Overlap, OverlapIndex, UncheckableExample
from inject.overlap.settings import OverlapSettings
from inject.tables import read_parquet, record_schema

_NAMED = 20
_MOST_PARTNERS = 8
"""Members that a non-member is paired with because of one run."""
_ROWS, _FACTS = "overlaps.parquet", "overlaps.json"


@dataclass(frozen=True, kw_only=True)
class OverlapFacts:
    """The amount compared, and the results."""

    rules: str
    """The rules in words."""
    documents: int
    """Documents looked at."""
    bytes: int
    """Their UTF-8 bytes."""
    offending: int
    """Documents with an offence."""
    dropped: int
    """Overlapping documents left out of the corpus: all or none."""
    examples: int
    """Examples looked for, of all datasets, spiked or not."""
    unchecked: tuple[UncheckableExample, ...]
    """Examples among them with too few words to be looked for."""


class OverlapFilter:
    """Tells documents to keep from documents to drop, and keeps the record.

    Args:
        examples: whose texts must not occur in the background.
        settings: the rules.
    """

    def __init__(self, examples: Sequence[Example], settings: OverlapSettings) -> None:
        self._index = OverlapIndex(examples, settings)
        self._documents = self._bytes = self._offending = 0
        self.found: list[Overlap] = []
        """Every offence, in the order of the documents."""

    def __call__(self, document: Document) -> bool:
        """Return whether a document stays."""
        overlaps = self._index.overlaps(document)
        self._documents += 1
        self._bytes += len(document.text.encode())
        self._offending += bool(overlaps)
        self.found += overlaps
        return not (overlaps and self._index.settings.drop is True)

    def require_none(self) -> None:
        """Stop if the rules require it and a document overlaps.

        Raises:
            InputError: naming the first documents and their overlapping examples.
        """
        if self._index.settings.drop != "stop" or not self._offending:
            return
        named = [
            f"{overlap.place} ({overlap.rule}: {overlap.dataset} {overlap.example_id})"
            for overlap in self.found
        ]
        raise InputError(
            f"{self._offending:,} documents of the background overlap with rows of the datasets: "
            f"{first_names(named, _NAMED)}",
            where="corpus",
            hint="Remove them from the background, or set audit.drop to true to skip them.",
        )

    def facts(self) -> OverlapFacts:
        """Return the counts so far."""
        return OverlapFacts(
            rules=self._index.settings.label(),
            documents=self._documents,
            bytes=self._bytes,
            offending=self._offending,
            dropped=self._offending if self._index.settings.drop is True else 0,
            examples=self._index.examples,
            unchecked=self._index.unchecked,
        )


def write_overlaps(folder: Path, overlaps: Sequence[Overlap], facts: OverlapFacts) -> None:
    """Write both files."""
    rows = [asdict(overlap) for overlap in overlaps]
    pq.write_table(pa.Table.from_pylist(rows, schema=record_schema(Overlap)), folder / _ROWS)
    (folder / _FACTS).write_text(json.dumps(asdict(facts), indent=1))


def read_overlaps(folder: Path) -> tuple[list[Overlap], OverlapFacts] | None:
    """Read both files; None if the folder has none.

    Raises:
        InputError: damaged files.
    """
    if not (folder / _FACTS).is_file():
        return None
    with reading(folder, "not a record of overlaps"):
        values = json.loads((folder / _FACTS).read_text())
        values["unchecked"] = tuple(UncheckableExample(**row) for row in values["unchecked"])
        facts = OverlapFacts(**values)
        return [Overlap(**row) for row in read_parquet(folder / _ROWS).to_pylist()], facts


def overlaps_between_sides(
    examples: Sequence[Example], settings: OverlapSettings
) -> list[dict[str, Any]]:
    """Return the pairs of a member and a non-member that share a run of words.

    Pairs of one group share their passage by construction, and a group is on one side. Of a run
    that more members have (a dataset's phrases), only the first few are paired: all pairs of such
    rows are millions. With `share` all are paired, since the share counts each run of an example.

    Args:
        examples: with their sides.
        settings: the n-gram rule is used, with its share.
    """
    members = [example for example in examples if example.side == "member"]
    index = OverlapIndex(
        members,
        settings.model_copy(update={"near_duplicate": None}),
        max_owners=_MOST_PARTNERS if settings.share is None else None,
    )
    return [
        {"member": overlap.example_id, "nonmember": example.example_id, "words": overlap.words}
        for example in examples
        if example.side == "nonmember"
        for overlap in index.overlaps(Document(example.text, example.source_id))
        if overlap.rule == NGRAM
    ]
