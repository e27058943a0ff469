"""What our pages are made of: sections of paragraphs, tables and figures, in the order shown.

A section is made by one function from the data that it shows. `parts.html.j2` writes each kind of
part; a text by itself is a paragraph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from markupsafe import Markup

from analysis.figures.style import ReportFigure
from analysis.table import Table, with_noun


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

    figure: ReportFigure
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


@dataclass(frozen=True, kw_only=True)
class Section:
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
