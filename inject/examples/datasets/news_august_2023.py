"""News of August 2023 (RealTimeData): the in-distribution control of Shi et al. 2024, Figure 5b.

Read from the hub, or from a file with its columns `title`, `date_publish` and `maintext`. The same
repository serves as background: `{kind: hub, id: RealTimeData/News_August_2023, field: maintext}`,
from which the audit drops the articles that are examples. Articles without a text are left out.
"""

from collections.abc import Iterator

from inject.examples.datasets.source import (
    Dataset,
    DatasetSource,
    place_id,
    placed_rows,
    text_field,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset

_HUB = HubDataset("RealTimeData/News_August_2023", "train")


def news_august_2023_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields title, date, text. The template has the text alone, as the background
    has it."""
    for row in placed_rows(source, _HUB, what="news_august_2023"):
        if text := text_field(row, "maintext").strip():
            yield Row(
                fields={
                    "title": text_field(row, "title").strip(),
                    "date": text_field(row, "date_publish")[:10],
                    "text": text,
                },
                source_id=place_id(row),
            )


DATASET = Dataset(
    name="news_august_2023",
    summary="News of August 2023: articles that are both background and contaminant.",
    template="{text}",
    rows=news_august_2023_rows,
    hub=_HUB.id,
)
