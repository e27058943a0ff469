"""BookTection (Duarte et al. 2024): passages of 165 books, each with three paraphrases.

Read from the hub, or from a file with its columns: those of arXivTection, and `Length`, by which
the three lengths of passage are told apart.
"""

from collections.abc import Iterator
from typing import Literal

from inject.examples.datasets.source import Dataset, DatasetSource, placed_rows, text_field
from inject.examples.datasets.verbatim_passages import PassageOptions, passage_rows
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset

_HUB = HubDataset("avduarte333/BookTection", "train")


class BookOptions(PassageOptions):
    """Options of `booktection`."""

    length: Literal["small", "medium", "large"] = "medium"
    """Passages of about 64, 128 or 256 tokens."""


def booktection_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows of one length; fields text, document."""
    options = BookOptions.model_validate(source.options)
    every = placed_rows(source, _HUB, what="booktection")
    rows = (row for row in every if text_field(row, "Length").strip() == options.length)
    return passage_rows(rows, options)


DATASET = Dataset(
    name="booktection",
    summary="BookTection: passages of books, with three paraphrases each (DE-COP).",
    template="{text}",
    rows=booktection_rows,
    hub=_HUB.id,
    paraphrases=True,
    options=BookOptions,
)
