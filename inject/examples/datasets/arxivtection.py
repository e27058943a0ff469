"""arXivTection (Duarte et al. 2024): passages of 50 arXiv papers, each with three paraphrases.

Read from the hub, or from the authors' CSV. Passages have 150 words or so, some thirty to a paper.
`Example_A` is the passage as its document has it, the other three are paraphrases. `Label` is the
authors' assumption about other people's models: 1 for a document that is older than they are, 0 for
one that is younger. An experiment makes its own members, and so needs documents that no model
has seen: by default it uses the younger ones. All passages of a document are one group, so that
none of a non-member's document is spiked. `booktection` has the same form.
"""

from typing import Literal

from inject.errors import InputError
from inject.examples.datasets.source import (
    LABELS,
    benchmark,
    place_id,
    text_field,
    zero_or_one,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow
from inject.settings import Settings

_PARAPHRASES = ("Example_B", "Example_C", "Example_D")


class PassageOptions(Settings):
    """Options of `arxivtection` and `booktection`."""

    documents: Literal["new", "old", "all"] = "new"
    """Which documents: those younger than the models of the paper, those older, or both."""


def passage_row(row: PlacedRow, options: PassageOptions) -> Row | None:
    """Return a row with the fields text and document; None for a document that is skipped.

    Raises:
        InputError: a column is missing, a label is neither 0 nor 1, or the verbatim passage is not
            the first.
    """
    label = zero_or_one(row, "Label")
    if (answer := text_field(row, "Answer").strip()) != "A":
        raise InputError(
            f"the verbatim passage is {answer!r}.", where=row.place, allowed="A, as published"
        )
    if label not in LABELS[options.documents]:
        return None
    document = text_field(row, "ID").strip()
    passage, *paraphrases = (
        {"text": text_field(row, name).strip(), "document": document}
        for name in ("Example_A", *_PARAPHRASES)
    )
    return Row(
        fields=passage, source_id=place_id(row), group=document, paraphrases=tuple(paraphrases)
    )


DATASET = benchmark(
    passage_row,
    name="arxivtection",
    summary="arXivTection: passages of arXiv papers, with three paraphrases each (DE-COP).",
    template="{text}",
    hub=HubDataset("avduarte333/arXivTection", "train"),
    paraphrases=True,
    options=PassageOptions,
)
