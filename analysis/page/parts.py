"""What our pages are made of: sections of paragraphs, tables and figures, in the order shown.

A section is made by one function from the data that it shows. `parts.html.j2` writes each kind of
part; a text by itself is a paragraph.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from analysis.page.drawing.picture import Picture
from analysis.page.table import Row, Table, with_noun
from analysis.page.template import page_script, page_template
from analysis.unit import Entry


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
    """All checks, or all verdicts, in one line; each leads to their section."""

    badges: Sequence[Badge]
    anchor: str
    label: str = "Checks"


class Gain(NamedTuple):
    """What one change does."""

    number: str
    """In points of AUC."""
    what: str
    rest: str
    sure: bool
    """Whether its interval leaves out 0."""


class Gains(NamedTuple):
    """Sentences about changes, beside each other."""

    gains: Sequence[Gain]


class Explorer(NamedTuple):
    """A table that a reader sorts and filters."""

    title: str
    table: Table
    filters: Sequence[tuple[int, str, Sequence[str]]]
    """Columns by which rows are filtered: place, title and values."""


class Columns(NamedTuple):
    """Parts that stand beside each other where there is room."""

    parts: Sequence["Part"]
    style: str = ""
    """`answer` for a picture and its table, `pictures` for those of the first screen."""


class Stacked(NamedTuple):
    """Parts below each other in one column."""

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
    | Badges
    | Gains
    | Explorer
    | Copied
    | Columns
    | Stacked
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


def fold_items(title: str, sentences: Sequence[str]) -> Fold | None:
    """Return sentences folded away under their number; None without any."""
    return Fold(f"{title}: {len(sentences):,}", [Items(sentences)]) if sentences else None


def fold_rest(table: Table, rows: Sequence[Row], what: str) -> Fold | None:
    """Return further rows of a table, folded away; None without any."""
    if not rows:
        return None
    rest = replace(table, title="The rest", rows=tuple(rows), caption="As above.", style="stack")
    return Fold(f"The other {len(rows)} {what}", [rest])


def present(*parts: Part | list[Part] | None) -> list[Part]:
    """Return the parts that are there, lists of them laid open."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, list):
            kept += [inner for inner in part if inner]
        elif part:
            kept.append(part)
    return kept


def pictures_in(parts: Sequence[Part]) -> Iterator[Picture]:
    """Yield all pictures, folded ones included."""
    for part in parts:
        if isinstance(part, Picture):
            yield part
        elif isinstance(part, Fold | Columns | Stacked):
            yield from pictures_in(part.parts)


_NUMBERS = re.compile(r"(?:[+−]?\d[\d.]*(?: points| %)? )?\[[^\]]*\]")
"""An interval and the number before it, which no line breaks."""
FILTERS: dict[str, Callable[..., Any]] = {
    "kind": lambda part: type(part).__name__,
    "unbroken": lambda text: _NUMBERS.sub(lambda found: found[0].replace(" ", "\u00a0"), text),
    "entry": lambda shown: Entry(shown) if isinstance(shown, str) else shown,
}
"""What `parts.html.j2` needs of a template that imports it."""


class Keyed(NamedTuple):
    """A sentence that begins with what is orange on the page."""

    key: str
    rest: str


class Beside(NamedTuple):
    """A page beside this one."""

    file: str
    title: str
    about: str


class Foot(NamedTuple):
    """What stands at the end of a page."""

    pages: Sequence[Beside] = ()
    lines: Sequence[str] = ()


def render_page(
    kind: str,
    title: str,
    sentences: Sequence[str | Keyed],
    sections: Sequence[Section],
    *,
    first: Sequence[Part] = (),
    foot: Foot | None = None,
    script: bool = False,
    linked: bool = False,
) -> str:
    """Return a page as text: the answer, pictures and checks on the first screen, then sections.

    Args:
        kind: of page, such as `spikein report`.
        title: what it is about.
        sentences: the answer, then what must be known to read it.
        sections: in the order of the page.
        first: what the first screen shows below the answer.
        foot: the end of the page.
        script: whether tables are to be sorted and texts copied.
        linked: whether the files of its pictures lie in `figures/` beside it.
    """
    return page_template("analysis.page", "page.html.j2", filters=FILTERS).render(
        kind_of_page=kind,
        title=title,
        sentences=sentences,
        first=first,
        sections=sections,
        foot=foot,
        script=page_script() if script else None,
        linked=linked,
    )
