"""The tables of docs/statistics.md, each between two marks of its name."""

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statistics.md"


def marks(name: str) -> tuple[str, str]:
    """Return the lines before and after a table."""
    return (f"<!-- {name}: written by python -m scripts.calibration -->", f"<!-- end of {name} -->")


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return a table; the first line names its columns."""
    rows = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_tables(
    tables: Mapping[str, Sequence[Sequence[str]]], *, studies: int, only_print: bool
) -> None:
    """Put every table between its marks, under the number of studies a cell; or print all."""
    error = 100 * sqrt(0.95 * 0.05 / studies)
    counted = f"{studies:,} studies a cell; a true 95 % has a standard error of {error:.1f} points."
    if only_print:
        for name, lines in tables.items():
            print(f"{name}\n{markdown(lines)}\n")
        return
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in tables.items():
        before, after = marks(name)
        head, rest = text.split(before)
        tail = rest.split(after, 1)[1]
        text = f"{head}{before}\n\n{counted}\n\n{markdown(lines)}\n\n{after}{tail}"
    PAGE.write_text(text, encoding="utf-8")
