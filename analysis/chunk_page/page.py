"""The page of an audit by chunks: one self-contained HTML file, in the look of a run's report.

    write_chunk_page(path, ChunkPage(title=…, sentences=…, facts=…, rows=…, detector=…))

Each chunk is a row of numbers with a fold of texts under it: what the models were given, how the
text goes on, and each model's closest continuation side by side, words in common marked. The most
suspicious chunk comes first; a script sorts and filters, and without it the page is whole. Styles
and script are inside, and a content security policy forbids loading anything and running any other
script. Every text is escaped by the template engine. A text that may not be shown is not in the
file at all, and neither are its continuations, which may repeat it. Cost: about 5 ms and 9 kB a
chunk of 512 words with three continuations.
"""

from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

from analysis.chunk_page.content import ChunkContinuation, ChunkPage, ChunkRow
from analysis.chunk_page.shared_words import SHORTEST_RUN, Part, mark_shared
from analysis.page.template import page_script, page_template
from inject.files import write_text

_PACKAGE = "analysis.chunk_page"


class Panel(NamedTuple):
    """One text of a chunk, as it is shown."""

    title: str
    parts: list[Part]
    similarities: list[tuple[str, float]]


class ShownChunk(NamedTuple):
    """A row with its texts, where they are shown."""

    row: ChunkRow
    panels: list[Panel]
    """The truth, then one a model; empty where no text is shown."""


def write_chunk_page(path: Path, page: ChunkPage) -> Path:
    """Write the page to a file, whole or not at all; return its path."""
    write_text(path, render(page))
    return path


def render(page: ChunkPage) -> str:
    """Return the page as text."""
    rows = sorted(page.rows, key=lambda row: (-_finite(row.suspicion), row.chunk))
    models = page.models()
    template = page_template(_PACKAGE, "page.html.j2", filters={"plain": _plain})
    return template.render(
        page=page,
        models=models,
        chunks=[ShownChunk(row, _panels(row, models) if page.shows(row) else []) for row in rows],
        suspicious=sum(row.suspicious for row in rows),
        hidden=sum(not page.shows(row) for row in rows),
        shortest=SHORTEST_RUN,
        absent=nan,
        own_style=_own_style(),
        script=page_script(_PACKAGE, "page.js"),
    )


def _panels(row: ChunkRow, models: Sequence[str]) -> list[Panel]:
    continuations = sorted(row.continuations, key=lambda one: models.index(one.model))
    # The truth is marked by what the audited model repeats of it.
    audited = next((one for one in continuations if one.model == "unlearned"), None)
    truth = mark_shared(row.truth, "" if audited is None else audited.text)
    return [
        Panel("Truth", truth, []),
        *(_panel(one, row.truth) for one in continuations),
    ]


def _panel(one: ChunkContinuation, truth: str) -> Panel:
    return Panel(
        one.model.capitalize(), mark_shared(one.text, truth), list(one.similarities.items())
    )


def _plain(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _finite(value: float) -> float:
    return float("-inf") if isnan(value) else value


def _own_style() -> str:
    from markupsafe import Markup

    return Markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8"))
