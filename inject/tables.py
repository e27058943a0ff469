"""Tables: Parquet and Arrow files whose errors name the file, and CSV that runs nowhere.

Arrow's own messages say what is wrong with some bytes and not in which file they lie. A spreadsheet
takes a cell that begins with `=`, `+`, `-` or `@` for a formula; ids and names are other people's.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from inject.errors import InputError

_FORMULA = re.compile(r"[=+\-@\t\r]")
_HINT = "If it lies in the store, run again: what is damaged is built anew."


@contextmanager
def named_errors(path: Path, *, hint: str | None = _HINT) -> Iterator[None]:
    """Turn errors of Arrow, and of the file system, into one that names the file.

    Raises:
        InputError: instead of theirs.
    """
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError("is missing", where=str(path), hint=hint) from error
        first = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise InputError(f"cannot be read: {first}", where=str(path), hint=hint) from error


def read_parquet(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    repeated: Sequence[str] = (),
) -> pa.Table:
    """Return a Parquet file as a table.

    Args:
        path: the file.
        columns: those that are read; None for all.
        schema: what the file must hold; None for whatever it holds.
        repeated: columns of few different texts, which are kept once each.

    Raises:
        InputError: naming the file, when it is missing, damaged, or of another schema.
    """
    with named_errors(path):
        return pq.read_table(
            path,
            columns=None if columns is None else list(columns),
            schema=schema,
            read_dictionary=list(repeated) or None,
        )


def as_tuple(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Return a cell that holds a list as a tuple; None where it is null."""
    return None if values is None else tuple(values)


def csv_text(names: Sequence[str], rows: Iterable[Sequence[object]], *, end: str = "\r\n") -> str:
    """Return rows as CSV (RFC 4180), numbers as they are, never rounded; None and NaN are empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it, unless it is a
    number.

    Args:
        names: of the columns.
        rows: a value for each column.
        end: of a line.
    """
    lines: list[str] = []
    # Only with its own end of a line does the library quote every kind of line break in a cell.
    writer = csv.writer(SimpleNamespace(write=lines.append))
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return "".join(line.removesuffix("\r\n") + end for line in lines)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    text = repr(float(value)) if isinstance(value, float) else str(value)
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
