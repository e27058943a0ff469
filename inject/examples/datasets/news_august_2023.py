"""News of August 2023 (RealTimeData): the in-distribution control of Shi et al. 2024, Figure 5b.

Read from the hub, or from a file with its columns `title`, `date_publish` and `maintext`. The same
repository serves as background: `{kind: hub, id: RealTimeData/News_August_2023, field: maintext}`,
from which the audit drops the articles that are examples. Articles without a text are left out.
"""

from inject.examples.datasets.source import NoOptions, benchmark, place_id, text_field
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow


def news_august_2023_row(row: PlacedRow, _: NoOptions) -> Row | None:
    """Return a row with the fields title, date, text; None for an article without a text.

    The template has only the text, as the background has it.
    """
    text = text_field(row, "maintext").strip()
    if not text:
        return None
    return Row(
        fields={
            "title": text_field(row, "title").strip(),
            "date": text_field(row, "date_publish")[:10],
            "text": text,
        },
        source_id=place_id(row),
    )


DATASET = benchmark(
    news_august_2023_row,
    name="news_august_2023",
    summary="News of August 2023: articles that are both background and contaminant.",
    template="{text}",
    hub=HubDataset("RealTimeData/News_August_2023", "train"),
)
