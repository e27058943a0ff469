"""A table as data: its content, before it is written to a terminal or to a page.

`spikein.cli.output.print_table` writes one to the terminal, the template of our pages to HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isnan
from typing import NamedTuple

from analysis.unit import ABSENT, NOTHING, Entry

MAX_COLUMNS = 5
"""Columns that fit on 17 cm of paper next to the row heads."""

PROTECTED = "Protected: the text is not shown."


class TableColumn(NamedTuple):
    """One column of a table."""

    title: str
    right: bool = False
    """Numbers are aligned right."""
    long: bool = False
    """Holds texts of several lines."""
    note: str = ""
    """Small text under the title."""


Row = tuple[str | Entry, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first column names its rows."""

    title: str = ""
    columns: tuple[TableColumn, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    style: str = "stack"
    """The class that a page gives it."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The titles of the columns."""
        return tuple(column.title for column in self.columns)


def texts(*titles: str) -> list[TableColumn]:
    """Return columns of words, aligned left."""
    return [TableColumn(title) for title in titles]


def numbers(*titles: str) -> list[TableColumn]:
    """Return columns of numbers, aligned right."""
    return [TableColumn(title, right=True) for title in titles]


def listing(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = ""
) -> Table | None:
    """Return the rows with the columns in which they differ; None if there are none.

    A value that all rows share is in the caption, and a column without any value is dropped.

    Args:
        title: of the table.
        columns: heads; the first column is always kept.
        rows: texts, one per column; empty if there is no value.
        caption: the text under the title.
    """
    if not rows:
        return None
    values = [list(dict.fromkeys(row[at] for row in rows)) for at in range(len(columns))]
    # A single row has no other to differ from: all its columns are kept.
    equal = [len(rows) > 1 and len(distinct) == 1 for distinct in values]
    used = [0, *(at for at in range(1, len(columns)) if not equal[at] and any(values[at]))]
    common = [
        f"{columns[at]} in all rows: {values[at][0]}."
        for at in range(1, len(columns))
        if equal[at] and values[at][0]
    ]
    return Table(
        title=title,
        caption=" ".join([caption, *common]).strip(),
        columns=tuple(
            TableColumn(columns[at], right=not any(text[:1].isalpha() for text in values[at]))
            for at in used
        ),
        rows=tuple(tuple(row[at] or NOTHING for at in used) for row in rows),
        style="stack listing",
    )


def facts(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    """Return names with their values, without heads."""
    return Table(
        title=title, columns=(TableColumn(""), TableColumn("")), rows=tuple(rows), style="facts"
    )


def split_table(table: Table) -> list[Table]:
    """Cut a table into tables of at most `MAX_COLUMNS` columns, of about the same width.

    Rows without any measurement are left out.
    """
    first, *columns = table.columns
    count = -(-len(columns) // MAX_COLUMNS) or 1
    ends = [round(len(columns) * at / count) for at in range(count + 1)]
    return [
        replace(
            table,
            title=table.title if count == 1 else f"{table.title}, {at + 1} of {count}",
            columns=(first, *columns[start:stop]),
            rows=tuple(
                (row[0], *row[1 + start : 1 + stop])
                for row in table.rows
                if any(entry != ABSENT for entry in row[1 + start : 1 + stop])
            ),
            caption=table.caption if at == 0 else "As above.",
        )
        for at, (start, stop) in enumerate(pairwise(ends))
    ]


def copies_text(label: str) -> str:
    """Return a number of copies as a head: `1 copy`, `5 to 8 copies`, `4 or more`."""
    # Late: the command line lists its commands without numpy.
    from analysis.copy_bins import ALL, copies_start

    if label == ALL:
        return "1 or more copies"
    if label.endswith("+"):
        return f"{copies_start(label)} or more"
    return "1 copy" if label == "1" else f"{label.replace('-', ' to ')} copies"


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun: `1 arm`, `1,200 arms`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tokens_label(value: float) -> str:
    """Return a number of tokens as an axis shows it: `300k`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def p_text(value: float | None) -> str:
    """Return a p-value in words; empty for NaN and None."""
    if value is None or isnan(value):
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds_text(value: float) -> str:
    """Return a time in words: `< 0.1 s`, `3.2 s`, `4 min 05 s`, `2 h 10 min`."""
    if 0 < value < 0.05:
        return "< 0.1 s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
