"""Dated news articles: a control whose members and non-members do not differ.

Read from CSV or JSON Lines with `date`, `title`, `text` and `url` (Wikinews' archive; also
`published_date`, `content` and `link`, the names that the hub's BBC archive uses), or from
that archive, which keeps one configuration a month and so needs `after` and `before`. Dates
are ISO. The stratum is the month: both sides of the pool have the same dates.
"""

from collections.abc import Iterator
from datetime import date

from inject.errors import InputError
from inject.examples.datasets.source import (
    Dataset,
    DatasetSource,
    place_id,
    placed_rows,
    text_field,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow
from inject.settings import Settings

_HUB = "RealTimeData/bbc_news_alltime"


class NewsOptions(Settings):
    """Options of `news`."""

    after: date | None = None
    """The first day to take, such as 2019-07-01."""
    before: date | None = None
    """The last day to take."""


def news_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields title, date (ISO), text, url."""
    options = NewsOptions.model_validate(source.options)
    for row in _raw_rows(source, options):
        day = _date(row)
        if (options.after and day < options.after) or (options.before and day > options.before):
            continue
        yield Row(
            fields={
                "title": text_field(row, "title").strip(),
                "date": day.isoformat(),
                "text": text_field(row, "text", "content").strip(),
                "url": text_field(row, "url", "link"),
            },
            source_id=place_id(row),
            stratum=f"{day:%Y-%m}",
        )


def _raw_rows(source: DatasetSource, options: NewsOptions) -> Iterator[PlacedRow]:
    first, last = options.after, options.before
    if source.path is not None:
        yield from placed_rows(source, HubDataset(_HUB, "train"), purpose="news")
        return
    if first is None or last is None:
        raise InputError(
            "the hub's archive is kept by month.",
            where="news",
            hint="Give both `options.after` and `options.before`, or `path:`.",
        )
    for number in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        month = f"{number // 12:04d}-{number % 12 + 1:02d}"
        yield from placed_rows(source, HubDataset(_HUB, "train", month), purpose="news")


def _date(row: PlacedRow) -> date:
    text = text_field(row, "date", "published_date")
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError:
        raise InputError(
            f"{text[:40]!r} is not a date.", where=row.place, allowed="YYYY-MM-DD"
        ) from None


DATASET = Dataset(
    name="news",
    summary="Dated news articles (Wikinews, BBC): an in-distribution control.",
    template="{title}\n{date}\n\n{text}",
    rows=news_rows,
    hub=_HUB,
    options=NewsOptions,
)
