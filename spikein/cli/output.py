"""Terminal output shared by all commands: consoles, tables, formatted numbers.

Text from data or from the user is always a `rich.text.Text`, so that its brackets are never
parsed as markup, and its control characters are escaped: a bundle's name could contain any.
"""

import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any, TextIO

from analysis.page.table import Table, with_noun
from inject.reading.former_names import FormerNameWarning
from inject.secrets import masked
from spikein.progress import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from analysis.page.parts import Part

__all__ = ["with_noun"]

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but tabs and line breaks."""
_NUMBER = re.compile(r"[\d+−–~<.-]|none$")
_WIDTH_WITHOUT_TERMINAL = 140
_PIECE = re.compile(r"\s*[^\s:/]*[:/]*")
"""Texts are folded between words, and between the parts of a setting or a path."""
_LONGEST_PIECE = 32
_GAP = 2
"""Between two columns, and on both sides of the table together."""


def console(stream: TextIO | None = None) -> "Console":
    """Return a console on standard output, or on `stream`; wide if it is not a terminal."""
    from rich.console import Console

    stream = stream or sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def _text(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(_escape_controls(text), style=style)


def _escape_controls(text: str) -> str:
    """Return a text with its control characters written out."""
    return _CONTROLS.sub(lambda sign: repr(sign[0])[1:-1], text)


def say(*texts: str, style: str = "") -> None:
    """Print lines of plain text to standard output; they are never wrapped."""
    for text in texts:
        console().print(_text(text, style), soft_wrap=True)


def warn(*texts: str) -> None:
    """Print lines to standard error, in yellow on a terminal; secrets in them are masked."""
    for text in texts:
        console(sys.stderr).print(_text(masked(text), "yellow"), soft_wrap=True)


def tell(text: str) -> None:
    """Print one plain line to standard error, apart from the output; secrets are masked."""
    console(sys.stderr).print(_text(masked(text)), soft_wrap=True)


@contextmanager
def former_names_as_notes() -> Iterator[None]:
    """Print warnings about former names as notes, each once, to standard error."""
    with warnings.catch_warnings():
        show_any = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, FormerNameWarning):
                tell(f"Note: {message}")
            else:
                show_any(message, category, *place, **more)

        warnings.showwarning = show
        warnings.simplefilter("once", FormerNameWarning)
        yield


def print_error(text: str) -> None:
    """Print an error to standard error, in red on a terminal; secrets in it are masked."""
    from rich.text import Text

    message = Text.assemble(("Error: ", "bold red"), _text(masked(text), "red"))
    console(sys.stderr).print(message, soft_wrap=True)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table to standard output; a column without any value is omitted.

    Numbers have thousands separators, None is empty; columns of numbers are right-aligned.
    On a narrow terminal texts are folded between words and settings. Columns that still do not
    fit are named below the table; no number or name is cut. Without a terminal everything fits.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    # Control characters first: they would count as spaces, or as nothing, in a width.
    lines = [[_escape_controls(_format_value(value)) for value in row] for row in rows]
    columns = {
        at: [title, *(line[at] for line in lines)]
        for at, title in enumerate(titles)
        if not lines or any(line[at] for line in lines)
    }
    right = {at for at, (_, *values) in columns.items() if _are_numbers(values)}
    widths = {at: max(map(len, texts)) for at, texts in columns.items()}
    least = {
        at: max(
            *(len(piece.strip()) for piece in _PIECE.findall(title)),
            *(
                len(text) if at in right else min(len(piece.strip()), _LONGEST_PIECE)
                for text in values
                for piece in _PIECE.findall(text)
            ),
        )
        for at, (title, *values) in columns.items()
    }
    terminal, visible = console(), list(columns)
    if sys.stdout.isatty():
        while len(visible) > 1 and _total_width(least, visible) > terminal.width:
            visible.pop()
        while _total_width(widths, visible) > terminal.width:
            widest = max(visible, key=lambda at: (widths[at] > least[at], widths[at]))
            if widths[widest] <= least[widest]:
                break
            widths[widest] -= 1
    terminal.width = max(terminal.width, _total_width(widths, visible))
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for at in visible:
        title = _fold_text(titles[at], widths[at])
        table.add_column(
            title, justify="right" if at in right else "left", width=widths[at], overflow="fold"
        )
    for line in lines:
        table.add_row(*(_text(_fold_text(line[at], widths[at])) for at in visible))
    terminal.print(table)
    if len(visible) < len(columns):
        hidden = ", ".join(titles[at] for at in columns if at not in visible)
        say(f"No room for: {hidden}. A wider terminal or a file shows them.", style="dim")


def _total_width(widths: Mapping[int, int], columns: Sequence[int]) -> int:
    """Return the width of a table of some columns."""
    return sum(widths[at] for at in columns) + _GAP * len(columns)


def _fold_text(text: str, width: int) -> str:
    """Return a text in lines of at most a width, if its pieces are."""
    lines = [""]
    for piece in _PIECE.findall(text):
        if len(lines[-1] + piece) <= width:
            lines[-1] += piece
        else:
            lines.append(piece.lstrip())
    return "\n".join(lines).lstrip("\n")


def print_rows(rows: Iterable[Mapping[str, object]]) -> None:
    """Print mappings of one kind as a table, titled by their keys; nothing without rows."""
    lines = list(rows)
    if lines:
        print_table(tuple(lines[0]), (tuple(line.values()) for line in lines))


def _are_numbers(values: Sequence[str]) -> bool:
    """Return whether there are values, and all begin as numbers do."""
    return any(values) and all(_NUMBER.match(text) for text in values if text)


def _format_value(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def show_table(table: Table) -> None:
    """Print a table of a page; nothing without rows."""
    if not table.rows:
        return
    say("")
    say(table.title, style="bold")
    print_table(table.heads, table.rows)
    if table.caption:
        say(table.caption, style="dim")


def show_parts(parts: "Iterable[Part]") -> None:
    """Print sentences and tables of a page, without pictures and folded tables."""
    from analysis.page.parts import Fold, Items, Note

    for part in parts:
        if isinstance(part, Table):
            show_table(part)
        elif isinstance(part, str):
            say(part)
        elif isinstance(part, Note):
            say(part.text, style="" if "loud" in part.style else "dim")
        elif isinstance(part, Items):
            say(*(f"  {sentence}" for sentence in part.sentences))
        elif isinstance(part, Fold):
            say(f"{part.title}.")
            show_parts(content for content in part.parts if not isinstance(content, Table))


def print_notes(notes: Iterable[str]) -> None:
    """Print notes for the user, each sentence once."""
    say(*(f"Note: {note}" for note in dict.fromkeys(notes)))


def exit_if_refused(problems: Sequence[str]) -> None:
    """End the command with the problems of a run; return if there are none.

    Raises:
        typer.Exit: with code 2.
    """
    import typer

    if not problems:
        return
    print_error("\n".join(["this cannot be run:", *(f"- {problem}" for problem in problems)]))
    raise typer.Exit(2)


def at_terminal() -> bool:
    """Return whether the user can confirm at a terminal."""
    return sys.stdin.isatty()


def require_agreement(question: str, refusal: Exception, *, declined: str) -> None:
    """Ask the user at a terminal; return if they agree.

    Raises:
        Exception: `refusal`, without a terminal.
        typer.Exit: when the user declines; `declined` is printed.
    """
    import typer

    if not at_terminal():
        raise refusal
    if not typer.confirm(question, err=True):
        say(declined)
        raise typer.Exit


def time_in_words(seconds: Sequence[float | None]) -> str:
    """Return the time of steps here: `about 12 s on this machine, and 1 step whose time …`."""
    estimated = [each for each in seconds if each is not None]
    unknown = len(seconds) - len(estimated)
    return ", and ".join(
        [
            *([f"about {duration(sum(estimated))} on this machine"] if sum(estimated) else []),
            *([f"{with_noun(unknown, 'step')} whose time is unknown"] if unknown else []),
        ]
    )


def short_number(number: float | None) -> str:
    """Return a number in short: `950`, `12.3 k`, `4.0 M`, `1.2 G`, `3.4e+18`; `` for None."""
    if number is None:
        return ""
    for unit in ("", " k", " M", " G", " T"):
        if abs(number) < 1000:
            return f"{number:.0f}" if not unit else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number * 1e15:.1e}"


def print_json(value: Any) -> None:
    """Print one JSON value and nothing else; records become mappings, missing numbers null."""
    print(json.dumps(_plain_json(value), indent=1, allow_nan=False))


def _plain_json(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if callable(columns := getattr(value, "columns", None)):
        value = columns()
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_json(item) for item in value]
    return value
