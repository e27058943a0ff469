"""What our pages are made of: sections of paragraphs, tables and figures, in the order shown.

A section is made by one function from the data that it shows. `parts.html.j2` writes each kind of
part; a text by itself is a paragraph.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from markupsafe import Markup

from analysis.figures.panel import Figure
from analysis.figures.render import ReportFigure
from analysis.page.table import Entry, Table, with_noun
from analysis.page.template import page_script, page_template


class Note(NamedTuple):
    """A paragraph that is not plain prose."""

    text: str
    style: str = "note"
    """`note`, `note loud`, or `how` for small print."""
    links: tuple[tuple[str, str], ...] = ()
    """Texts and addresses behind it."""


class Heading(NamedTuple):
    """A heading within a section."""

    text: str


class Items(NamedTuple):
    """A list of sentences."""

    sentences: Sequence[str]


class Fold(NamedTuple):
    """Parts that are folded away on a screen."""

    title: str
    parts: Sequence["Part"]
    screen_only: bool = False
    """Whether paper leaves it out."""


class Picture(NamedTuple):
    """A figure."""

    figure: ReportFigure | Figure
    drawing: Markup
    linked: bool
    """Whether its files lie in `figures/` beside the page."""


class Board(NamedTuple):
    """A table whose rows have levels, of which a reader may hide the higher ones."""

    table: Table
    choices: Sequence[tuple[int, str]]
    """The levels that occur, lowest first, and what they are called."""


class Explorer(NamedTuple):
    """A table that a reader sorts and filters."""

    title: str
    table: Table
    filters: Sequence[tuple[int, str, Sequence[str]]]
    """Columns by which rows are filtered: place, title and values."""


class Card(NamedTuple):
    """A verdict."""

    name: str
    verdict: str
    verdict_line: str
    sentence: str
    parts: Sequence["Part"]


class Cards(NamedTuple):
    """Verdicts beside each other."""

    cards: Sequence[Card]


class Columns(NamedTuple):
    """Parts that stand beside each other where there is room."""

    parts: Sequence["Part"]


class Copied(NamedTuple):
    """Text that a button copies."""

    name: str
    """Of the element that holds it."""
    button: str
    paragraphs: Sequence[str]
    verbatim: bool = False
    """Whether lines stay as they are."""


Part: TypeAlias = (
    str
    | Note
    | Heading
    | Items
    | Table
    | Fold
    | Picture
    | Board
    | Explorer
    | Cards
    | Copied
    | Columns
)


class Section(NamedTuple):
    """One question and what answers it."""

    anchor: str
    short: str
    """In the navigation."""
    title: str
    parts: Sequence[Part]


def fold(table: Table) -> Fold:
    """Return a table folded away under its title."""
    return Fold(f"{table.title}: {with_noun(len(table.rows), 'row')}", [table])


def present(*parts: Part | list[Part] | None) -> list[Part]:
    """Return the parts that are there, lists of them laid open."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, list):
            kept += [inner for inner in part if inner]
        elif part:
            kept.append(part)
    return kept


FILTERS: dict[str, Callable[..., Any]] = {
    "kind": lambda part: type(part).__name__,
    "entry": lambda shown: Entry(shown) if isinstance(shown, str) else shown,
    "percent": lambda value: f"{100 * min(1.0, max(0.0, value)):.1f}%",
}
"""What `parts.html.j2` needs of a template that imports it."""


def render_page(
    kind: str, title: str, sentences: Sequence[str], sections: Sequence[Section], *, script: bool
) -> str:
    """Return a page of sections as text.

    Args:
        kind: of page, such as `spikein report`.
        title: what it is about.
        sentences: what stands above everything else, the most important first.
        sections: in the order of the page.
        script: whether tables are to be sorted and texts copied.
    """
    return page_template("analysis.page", "page.html.j2", filters=FILTERS).render(
        kind_of_page=kind,
        title=title,
        sentences=sentences,
        sections=sections,
        script=page_script() if script else None,
    )
