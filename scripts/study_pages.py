"""A page of docs/results: manual text, and between two marks the output of a run.

A page has room for one table or picture. `shelved` keeps that one, writes all tables of the run to
a CSV file with one line per number, and links it and the other pictures.
"""

import csv
import re
from collections.abc import Collection, Iterator
from pathlib import Path

START = "<!-- from here on written by scripts.study_results -->"
STOP = "<!-- up to here written by scripts.study_results -->"
COLUMNS = ("table", "row", "column", "value", "low", "high")
_NUMBERS = re.compile(r"(-?[\d.]+)(?: \[(-?[\d.]+), (-?[\d.]+)\]| \(no interval\))?")
_PICTURE = re.compile(r"!\[(.*)\]\((.*)\)")


def page_with(page: str, content: str) -> str:
    """Return the page with another generated part; a new page gets a place for the reading."""
    before, _, after_start = page.partition(START)
    _, _, after = after_start.partition(STOP)
    return f"{before}{START}\n\n{content}\n\n{STOP}{after or chr(10)}"


def shelved(content: str, *, file: Path, keep: Collection[str]) -> str:
    """Write the tables to a CSV file; return what stays on the page.

    Args:
        content: the generated part: a line on the run, then sections of `## TITLE`, a caption,
            tables and pictures.
        file: the CSV file, in `docs/data/`. The column `caption` has the captions; the first
            cells that distinguish a row from the others name it.
        keep: titles of tables and names of pictures that stay.
    """
    head, *sections = re.split(r"(?m)^## ", content)
    lines, stays, links = [], [], []
    for section in sections:
        title, _, body = section.partition("\n")
        blocks = body.strip().split("\n\n")
        tables = [block for block in blocks if block.startswith("|")]
        pictures = [picture for picture in map(_PICTURE.fullmatch, blocks) if picture]
        words = [block for block in blocks if not block.startswith(("|", "!["))]
        numbers = [line for table in tables for line in _lines(title, table)]
        if numbers:
            lines += [(title, "", "caption", text, "", "") for text in words] + numbers
        if title in keep or not tables:
            stays += [f"## {title}", *words, *tables]
        stays += [picture[0] for picture in pictures if picture[1] in keep]
        links += [f"[{picture[1]}]({picture[2]})" for picture in pictures if picture[1] not in keep]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([COLUMNS, *lines])
    summary = f"{head.strip()} All tables: [{file.name}](../data/{file.name})."
    if links:
        summary += f" Pictures: {', '.join(links)}."
    return "\n\n".join([*stays, summary])


def _lines(title: str, table: str) -> Iterator[tuple[str, ...]]:
    """Give the lines of the CSV file for one table, without its empty cells."""
    head, _, *rows = (_cells(line) for line in table.splitlines())
    named = next(n for n in range(1, len(head) + 1) if len({*_keys(rows, n)}) == len(rows))
    for row, key in zip(rows, _keys(rows, named), strict=True):
        for column, cell in zip(head[named:], row[named:], strict=True):
            if cell != "–":
                match = _NUMBERS.fullmatch(cell.replace("−", "-").replace("+", ""))
                value = match.groups(default="") if match else (cell, "", "")
                yield (title, key, column, *value)


def _keys(rows: list[list[str]], n: int) -> list[str]:
    return ["; ".join(row[:n]) for row in rows]


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return [cell.strip().replace("`", "").replace("\\|", "|") for cell in cells]
