"""The parts of our pages: sections of paragraphs, tables and figures, in the order shown.

A section is made by one function from the data that it shows, by `answer`. `parts.html.j2` writes
each kind of part; a text by itself is a paragraph. All pages have one look, and escape every text.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from analysis.page.drawing.elements import visible
from analysis.page.drawing.picture import Picture
from analysis.page.table import Table, with_noun
from analysis.unit import Entry

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

OPEN_ROWS = 12
"""Rows before the fold of a longer table."""
HALF = 640.0
"""A wider picture has a row of its own."""


class Note(NamedTuple):
    """A paragraph that is not plain prose."""

    text: str
    style: str = "note"
    """`note`, `note loud`, `how` for small print, or `say` for the sentence of a section."""
    links: tuple[tuple[str, str], ...] = ()
    """Texts and addresses behind it."""


class Heading(NamedTuple):
    """A heading within a section."""

    text: str


class Items(NamedTuple):
    """A list of sentences."""

    sentences: Sequence[str]


class Fold(NamedTuple):
    """Parts that are folded away on a screen, and stay out of print."""

    title: str
    parts: Sequence["Part"]


class Badge(NamedTuple):
    """A check in one glance."""

    name: str
    verdict: str
    """`passed`, `failed`, or anything else for a check that cannot tell."""
    lines: Sequence[str]
    """Its number, and what a pass needs."""


class Badges(NamedTuple):
    """All checks, or all verdicts, in one line; each links to their section."""

    badges: Sequence[Badge]
    anchor: str
    label: str = "Checks"


class Effect(NamedTuple):
    """The effect of one change."""

    number: str
    """In points of AUC."""
    what: str
    rest: str
    sure: bool
    """Whether its interval excludes 0."""


class Effects(NamedTuple):
    """Sentences about changes, side by side."""

    gains: Sequence[Effect]


class Explorer(NamedTuple):
    """A table that a reader sorts and filters."""

    title: str
    table: Table
    filters: Sequence[tuple[int, str, Sequence[str]]]
    """Columns by which rows are filtered: place, title and values."""


class Columns(NamedTuple):
    """Parts that are side by side if there is room."""

    parts: Sequence["Part"]
    style: str = ""
    """`answer` for a picture and its table, `pictures` for those of the first screen."""


class VerticalGroup(NamedTuple):
    """Parts below each other in one column."""

    parts: Sequence["Part"]


class CopyButton(NamedTuple):
    """Text that a button copies."""

    name: str
    """Of the element that contains it."""
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
    | Badges
    | Effects
    | Explorer
    | CopyButton
    | Columns
    | VerticalGroup
)


class Section(NamedTuple):
    """One question and what answers it."""

    anchor: str
    short: str
    """In the navigation."""
    title: str
    parts: Sequence[Part]


class SiblingPage(NamedTuple):
    """A further page of the report."""

    file: str
    title: str
    about: str
    sections: Sequence[Section]


def answer(
    anchor: str,
    short: str,
    title: str,
    sentence: str,
    *blocks: Part | None,
    extra: Iterable[Part | None] = (),
    open_rows: int = OPEN_ROWS,
    others: str = "rows",
) -> Section | None:
    """Return a section: its sentence, a picture and a table side by side, all else below.

    A picture that is too wide has its table below it.

    Args:
        anchor: its address in the page.
        short: its name in the navigation.
        title: the question.
        sentence: the answer.
        *blocks: parts shown side by side, and paragraphs below them.
        extra: what follows.
        open_rows: rows of a table that are shown; further ones are folded.
        others: what these rows are.

    Returns:
        The section; None if it has nothing to show.
    """
    adjacent: list[Part] = []
    below: list[Part] = []
    further: list[Part] = []
    for block in blocks:
        if isinstance(block, Table):
            first, *rows = opened(block, open_rows, others)
            adjacent.append(first)
            further += rows
        elif isinstance(block, Picture):
            adjacent.append(block)
        elif block:
            below.append(block)
    if adjacent and not any(isinstance(part, Picture) and part.width > HALF for part in adjacent):
        adjacent = [Columns(adjacent, "answer")]
    lead: list[Part] = [Note(sentence, "say")] if sentence else []
    parts: list[Part] = [*lead, *adjacent, *below, *further, *(part for part in extra if part)]
    return Section(anchor, short, title, parts) if parts else None


def opened(table: Table, rows: int, others: str) -> list[Part]:
    """Return the first rows of a table, and the others folded."""
    if len(table.rows) <= rows:
        return [table]
    remaining = replace(
        table, title="The rest", rows=table.rows[rows:], caption="As above.", style="stack"
    )
    title = f"The other {len(remaining.rows)} {others}"
    return [replace(table, rows=table.rows[:rows]), Fold(title, [remaining])]


def folded(title: str, parts: Sequence[Part]) -> Fold | None:
    """Return parts folded away; None without any."""
    return Fold(title, parts) if parts else None


def fold(table: Table | None) -> Fold | None:
    """Return a table folded away under its title."""
    return Fold(f"{table.title}: {with_noun(len(table.rows), 'row')}", [table]) if table else None


def fold_items(title: str, sentences: Sequence[str]) -> Fold | None:
    """Return sentences folded away under their number; None without any."""
    return Fold(f"{title}: {len(sentences):,}", [Items(sentences)]) if sentences else None


def present(*parts: Part | list[Part] | None) -> list[Part]:
    """Return the parts that are there, lists of them laid open."""
    lists = (part if isinstance(part, list) else [part] for part in parts)
    return [part for own in lists for part in own if part]


def pictures_in(parts: Sequence[Part]) -> Iterator[Picture]:
    """Yield all pictures, folded ones included."""
    for part in parts:
        if isinstance(part, Picture):
            yield part
        elif isinstance(part, Fold | Columns | VerticalGroup):
            yield from pictures_in(part.parts)


_NUMBERS = re.compile(r"(?:[+−]?\d[\d.]*(?: points| %)? )?\[[^\]]*\]")
"""An interval and the number before it, which no line breaks."""
FILTERS: dict[str, Callable[..., Any]] = {
    "kind": lambda part: type(part).__name__,
    "unbroken": lambda text: _NUMBERS.sub(lambda match: match[0].replace(" ", "\u00a0"), text),
    "entry": lambda value: Entry(value) if isinstance(value, str) else value,
}
"""The names that `parts.html.j2` requires, here and in a template that imports it."""


def render_page(
    kind: str,
    title: str,
    sentences: Sequence[str | tuple[str, str]],
    sections: Sequence[Section],
    *,
    first: Sequence[Part] = (),
    foot: tuple[Sequence[SiblingPage], str] = ((), ""),
    script: bool = False,
    linked: bool = False,
) -> str:
    """Return a page as text: the answer, pictures and checks on the first screen, then sections.

    Args:
        kind: of page, such as `spikein report`.
        title: what it is about.
        sentences: the answer, then what must be known to read it; of two texts the first is orange.
        sections: in the order of the page.
        first: what the first screen shows below the answer.
        foot: the pages that its foot leads to, and what it says.
        script: whether tables are to be sorted and texts copied.
        linked: whether the files of its pictures are in `figures/` next to it.
    """
    return page_template("analysis.page", "page.html.j2").render(
        kind_of_page=kind,
        title=title,
        sentences=sentences,
        first=first,
        sections=sections,
        pages=foot[0],
        foot=foot[1],
        script=page_script() if script else None,
        digest=script_digest(),
        linked=linked,
    )


@cache
def page_template(package: str, name: str) -> "Template":
    """Return a template that knows our stylesheet as `style`; it is compiled once.

    What it is given is escaped, control characters visibly so (`\\x1b`, `\\u202e`), and a name that
    it is not given is an error.

    Args:
        package: which contains the file.
        name: of the file.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        # A page of another package may import `parts.html.j2`.
        loader=ChoiceLoader([PackageLoader(source, ".") for source in (package, "analysis.page")]),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    # Our own stylesheet, not data: what enters unescaped besides figures.
    style = _own_file("style.css") + _own_file("drawing/drawing.css")
    environment.globals["style"] = Markup(style)
    return environment.get_template(name)


def page_script() -> "Markup":
    """Return the script of our pages, in which no data are."""
    from markupsafe import Markup

    return Markup(_own_file("report.js"))


def script_digest() -> str:
    """Return `sha256-…`: a browser runs the script that has it and no other."""
    digest = hashlib.sha256(page_script().encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _own_file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
