"""What all commands share in talking to a person: consoles, tables, numbers in words.

Text from data or from the user is always a `rich.text.Text`, so that brackets in it are never
taken for markup.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TextIO

from inject.secrets import masked

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL = 140
_WIDTH_OF_A_NAME = 16
_GAP = 2
"""Between two columns."""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    right: bool = False
    """Numbers stand to the right."""
    whole: bool = False
    """Never broken over two lines."""


def console(stream: TextIO | None = None) -> "Console":
    """Return a console on standard output, or on `stream`; wide where no terminal is."""
    from rich.console import Console

    stream = stream or sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def say(text: str, *, style: str = "") -> None:
    """Print one line of plain text to standard output; it is never wrapped."""
    from rich.text import Text

    console().print(Text(text, style=style), soft_wrap=True)


def warn(text: str) -> None:
    """Print one line to standard error, in yellow on a terminal; secrets in it are masked."""
    from rich.text import Text

    console(sys.stderr).print(Text(masked(text), style="yellow"), soft_wrap=True)


def tell(text: str) -> None:
    """Print one plain line to standard error, where it disturbs no output; secrets are masked."""
    from rich.text import Text

    console(sys.stderr).print(Text(masked(text)), soft_wrap=True)


def print_error(text: str) -> None:
    """Print an error to standard error, in red on a terminal; secrets in it are masked."""
    from rich.text import Text

    shown = Text.assemble(("Error: ", "bold red"), (masked(text), "red"))
    console(sys.stderr).print(shown, soft_wrap=True)


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of plain texts to standard output.

    No number is cut in silence: where the terminal is too narrow, texts are folded first, and a
    number that has no room even then ends in an ellipsis. Without a terminal there is room.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    widths = [
        max(len(column.title), *(len(row[at]) for row in rows), 0)
        for at, column in enumerate(columns)
    ]
    shown = console()
    least = sum(
        width if column.whole or column.right else min(width, _WIDTH_OF_A_NAME)
        for column, width in zip(columns, widths, strict=True)
    )
    least += _GAP * len(columns)
    if not sys.stdout.isatty():
        shown.width = max(shown.width, least)
    too_wide = least > shown.width
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        folded = too_wide and not column.right and width > _WIDTH_OF_A_NAME
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=column.right or (column.whole and not folded),
            overflow="ellipsis" if column.right else "fold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    shown.print(table)


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun: `1 arm`, `1,200 arms`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_notes(notes: Iterable[str]) -> None:
    """Print what somebody should know, each sentence once."""
    for note in dict.fromkeys(notes):
        say(f"Note: {note}")


def exit_if_refused(problems: Sequence[str]) -> None:
    """End the command with what a run would refuse; return where there is nothing.

    Raises:
        typer.Exit: with code 2.
    """
    import typer

    if not problems:
        return
    print_error("\n".join(["this cannot be run:", *(f"- {problem}" for problem in problems)]))
    raise typer.Exit(2)


def short_number(number: float | None) -> str:
    """Return a number in short: `950`, `12.3 k`, `4.0 M`, `1.2 G`, `3.4e+18`; `` for None."""
    if number is None:
        return ""
    for unit in ("", " k", " M", " G", " T"):
        if abs(number) < 1000:
            return f"{number:.0f}" if not unit else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number * 1e15:.1e}"
