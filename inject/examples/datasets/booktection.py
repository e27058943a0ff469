"""BookTection (Duarte et al. 2024): passages of 165 books, each with three paraphrases.

Read from the hub, or from a file with its columns: those of arXivTection, and `Length`, which
distinguishes the three passage lengths.
"""

from typing import Literal

from inject.examples.datasets.arxivtection import PassageOptions, passage_row
from inject.examples.datasets.source import benchmark, text_field
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow


class BookOptions(PassageOptions):
    """Options of `booktection`."""

    length: Literal["small", "medium", "large"] = "medium"
    """Passages of about 64, 128 or 256 tokens."""


def booktection_row(row: PlacedRow, options: BookOptions) -> Row | None:
    """Return a row with the fields text and document; None for one of another length."""
    if text_field(row, "Length").strip() != options.length:
        return None
    return passage_row(row, options)


DATASET = benchmark(
    booktection_row,
    name="booktection",
    summary="BookTection: passages of books, with three paraphrases each (DE-COP).",
    template="{text}",
    hub=HubDataset("avduarte333/BookTection", "train"),
    paraphrases=True,
    options=BookOptions,
)
