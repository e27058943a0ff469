"""A cell, and its counts."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np


class Drawn(NamedTuple):
    """One interval of one study; both ends NaN if it was refused."""

    low: float
    high: float
    truth: float


@dataclass(frozen=True)
class Cell:
    """One line of docs/data/coverage.csv."""

    table: str
    """Its plot."""
    name: str
    study: Callable[[np.random.Generator], Drawn]
    """Draws one study and returns a public function's result for it."""
    nominal: float = 0.95


class Counted(NamedTuple):
    """The coverage of a cell's intervals."""

    table: str
    cell: str
    nominal: float
    coverage: float
    """Of the intervals that were given; NaN without any."""
    refused: float
    """Share of the studies without an interval."""
    studies: int
    width: float
    """Median of the intervals that were given."""

    @property
    def holds(self) -> bool:
        """Whether 92 to 97.5 % contain the truth and at most one study in ten has no interval."""
        return self.refused <= 0.1 and 0.92 <= self.coverage <= 0.975


def count(cell: Cell, studies: int, *, seed: int = 0) -> Counted:
    """Simulate a cell; another seed has other studies."""
    key = zlib.crc32(f"{cell.table}: {cell.name}".encode())
    random = np.random.default_rng([seed, key])
    studies_drawn = [cell.study(random) for _ in range(studies)]
    with_interval = [
        study for study in studies_drawn if isfinite(study.low) and isfinite(study.high)
    ]
    n_covered = sum(study.low <= study.truth <= study.high for study in with_interval)
    return Counted(
        cell.table,
        cell.name,
        cell.nominal,
        n_covered / len(with_interval) if with_interval else float("nan"),
        1 - len(with_interval) / studies,
        studies,
        float(np.median([study.high - study.low for study in with_interval]))
        if with_interval
        else float("nan"),
    )
