"""Rows of DE-COP's benchmarks (Duarte et al. 2024): a passage, and three paraphrases of it.

`Example_A` is the passage as its document has it, the other three are paraphrases. `Label` says
what the authors believe of other people's models: 1 for a document that is older than they are, 0
for one that is younger. An experiment makes members of its own, and so needs documents that no
model has seen: the younger ones are taken unless others are asked for. All passages of a document
are one group, so that none of a non-member's document is spiked.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from inject.errors import InputError
from inject.examples.datasets.source import place_id, text_field
from inject.examples.example import Row
from inject.reading.rows import PlacedRow
from inject.settings import Settings

_LABELS = {"new": ("0",), "old": ("1",), "all": ("0", "1")}
_PARAPHRASES = ("Example_B", "Example_C", "Example_D")


class PassageOptions(Settings):
    """Options of `arxivtection` and `booktection`."""

    documents: Literal["new", "old", "all"] = "new"
    """Which documents: those younger than the models of the paper, those older, or both."""


def passage_rows(rows: Iterable[PlacedRow], options: PassageOptions) -> Iterator[Row]:
    """Yield a row for each passage; fields text and document.

    Raises:
        InputError: a column is missing, a label is neither 0 nor 1, or the verbatim passage is not
            the first.
    """
    for row in rows:
        label = text_field(row, "Label").strip()
        if label not in _LABELS["all"]:
            raise InputError(f"unknown label {label!r}.", where=row.place, allowed="0 or 1")
        if (answer := text_field(row, "Answer").strip()) != "A":
            raise InputError(
                f"the verbatim passage is {answer!r}.", where=row.place, allowed="A, as published"
            )
        if label not in _LABELS[options.documents]:
            continue
        document = text_field(row, "ID").strip()
        yield Row(
            fields=_fields(row, "Example_A", document),
            source_id=place_id(row),
            group=document,
            paraphrases=tuple(_fields(row, name, document) for name in _PARAPHRASES),
        )


def _fields(row: PlacedRow, name: str, document: str) -> dict[str, str]:
    return {"text": text_field(row, name).strip(), "document": document}
