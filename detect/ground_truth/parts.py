"""The parts of a bundle while it is packed or read; what several models share is there once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from detect.ground_truth.archive import PARQUET, Archive
from detect.ground_truth.row_tables import table_of
from detect.ground_truth.statistics_table import statistics_rows, statistics_table
from detect.token_statistics import TokenStatistics
from inject.errors import InputError
from inject.examples.example import Example, examples_of

REPEATED = ("example_id", "detector", "setting")
"""Columns of the scores that hold few different texts."""
_STATISTICS = "statistics"


class Parts:
    """The parts of a bundle while it is packed."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._alive: list[object] = []

    def add(self, kind: str, thing: object, table: Any) -> str:
        """Return the name of the part that holds `thing`, made by calling `table` if need be."""
        key = (kind, id(thing))
        if key not in self._names:
            self._alive.append(thing)
            number = sum(1 for name in self.tables if name.startswith(f"{kind}/")) + 1
            self._names[key] = f"{kind}/{number:04d}{PARQUET}"
            self.tables[self._names[key]] = table()
        return self._names[key]

    def statistics(self, rows: Sequence[TokenStatistics], withheld: npt.NDArray[np.bool_]) -> str:
        """Return the name of the part with token statistics."""
        return self.add(_STATISTICS, rows, lambda: statistics_table(rows, withheld))

    def rows(self, kind: str, rows: Sequence[Any], withheld: npt.NDArray[np.bool_]) -> str:
        """Return the name of the part with what is known of each row (`row_tables`)."""
        return self.add(kind, rows, lambda: table_of(rows, kind, withheld))


class OpenParts:
    """The parts of a bundle while it is read."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._tables: dict[str, pa.Table] = {}
        self._examples: dict[str, tuple[Example, ...]] = {}
        self._statistics: dict[str, tuple[TokenStatistics, ...]] = {}

    def table(self, name: str, rows: int | None = None) -> pa.Table:
        """Return a part as a table.

        Raises:
            InputError: it has another number of rows than `rows`.
        """
        if name not in self._tables:
            repeated = REPEATED if name.startswith("scores/") else ()
            self._tables[name] = self._archive.table(name, repeated=repeated)
        found = self._tables[name]
        if rows is not None:
            self._check(name, len(found), rows)
        return found

    def examples(self, name: str) -> tuple[Example, ...]:
        """Return the rows of a part."""
        if name not in self._examples:
            self._examples[name] = tuple(examples_of(self.table(name)))
        return self._examples[name]

    def statistics(self, name: str, rows: int) -> tuple[TokenStatistics, ...]:
        """Return token statistics, one a row.

        Raises:
            InputError: there is another number of them.
        """
        if name not in self._statistics:
            where = f"{self._archive.path}: {name}"
            self._statistics[name] = tuple(statistics_rows(self.table(name), where=where))
        self._check(name, len(self._statistics[name]), rows)
        return self._statistics[name]

    def _check(self, name: str, found: int, rows: int) -> None:
        if found != rows:
            where = f"{self._archive.path}: {name}"
            raise InputError(f"holds {found} rows, not {rows}", where=where)
