"""Tables of a page of the documentation, each between two marks of its name."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def marks(name: str) -> tuple[str, str]:
    """Return the lines before and after a table."""
    return (f"<!-- {name}: written by python -m scripts.calibration -->", f"<!-- end of {name} -->")


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return a table; the first line names its columns."""
    rows = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_tables(
    tables: Mapping[str, Sequence[Sequence[str]]], *, page: Path, counted: str, only_print: bool
) -> None:
    """Put every table between its marks, under a sentence on its studies; or print all."""
    if only_print:
        for name, lines in tables.items():
            print(f"{name}\n{markdown(lines)}\n")
        return
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        before, after = marks(name)
        head, rest = text.split(before)
        tail = rest.split(after, 1)[1]
        text = f"{head}{before}\n\n{counted}\n\n{markdown(lines)}\n\n{after}{tail}"
    page.write_text(text, encoding="utf-8")
