"""What a cell is, and how it is counted."""

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
    """Draws one study and returns what a public function says of it."""
    nominal: float = 0.95


class Counted(NamedTuple):
    """What the intervals of a cell hold."""

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
        """Whether 92 to 97.5 % hold the truth and at most one study of ten has no interval."""
        return self.refused <= 0.1 and 0.92 <= self.coverage <= 0.975


def count(cell: Cell, studies: int, *, seed: int = 0) -> Counted:
    """Simulate a cell; another seed has other studies."""
    key = zlib.crc32(f"{cell.table}: {cell.name}".encode())
    random = np.random.default_rng([seed, key])
    drawn = [cell.study(random) for _ in range(studies)]
    given = [one for one in drawn if isfinite(one.low) and isfinite(one.high)]
    held = sum(one.low <= one.truth <= one.high for one in given)
    return Counted(
        cell.table,
        cell.name,
        cell.nominal,
        held / len(given) if given else float("nan"),
        1 - len(given) / studies,
        studies,
        float(np.median([one.high - one.low for one in given])) if given else float("nan"),
    )
