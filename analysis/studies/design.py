"""The design of a study: the effects that its arms can separate, before anything runs.

The design matrix has one row per arm: an intercept, log2 of each numeric column, and for each other
column one dummy per level but the first. Its rank limits the number of effects that can be
estimated. The variance inflation of a column, 1 / (1 - R²) of its regression on all others, is the
factor by which their correlation raises the variance of its effect.

Steps and tokens are whole numbers, so what is exactly a combination on paper (tokens = steps x
batch) is nearly one in the arms: a column that the others explain but for 0.1 % of its variance is
aliased, and its inflation infinite.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from analysis.intervals.influence import Floats

LARGEST_INFLATION = 1_000.0
"""Above it a column counts as a combination of the others."""
INTERCEPT = "intercept"
_SHARE = 0.01
"""Smallest coefficient, of standardised columns, with which one is a part of another."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """A design matrix in numbers."""

    rank: int
    """Number of effects that can be estimated, the intercept included."""
    inflation: Mapping[str, float]
    """Variance inflation of each column but the intercept; infinite for a combination of others."""
    aliased: Mapping[str, tuple[str, ...]]
    """Each column that is a combination of earlier ones, with these; the intercept, if it is the
    same in all arms."""

    @property
    def size(self) -> int:
        """Number of columns, the intercept included."""
        return 1 + len(self.inflation)


def design(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> Design:
    """Return the rank, the inflation and the aliases of a design matrix.

    Args:
        rows: one per arm: its value of every column.
        columns: the names of some.

    >>> design([{"a": 1, "b": 2}, {"a": 2, "b": 4}, {"a": 4, "b": 8}], ["a", "b"]).aliased
    {'b': ('a',)}
    """
    standard = {
        name: _standardise(values)
        for column in columns
        for name, values in _matrix_columns(column, [row[column] for row in rows])
    }
    independent: list[str] = []
    aliased: dict[str, tuple[str, ...]] = {}
    for name, values in standard.items():
        before = [standard[other] for other in independent]
        if _inflation(values, before) < inf:
            independent.append(name)
        else:
            aliased[name] = _parts(values, dict(zip(independent, before, strict=True)))
    others = {
        name: [values for other, values in standard.items() if other != name] for name in standard
    }
    return Design(
        rank=1 + len(independent),
        inflation={name: _inflation(values, others[name]) for name, values in standard.items()},
        aliased=aliased,
    )


def is_positive_number(value: Any) -> bool:
    """Return whether a column of such values is in the matrix by its logarithm."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def _matrix_columns(column: str, values: Sequence[Any]) -> list[tuple[str, Floats]]:
    """Return the columns of the matrix that one setting or number makes, with their names."""
    if all(map(is_positive_number, values)):
        return [(column, np.log2(np.array(values, dtype=float)))]
    levels = list(dict.fromkeys(map(str, values)))
    if len(levels) < 2:
        return [(column, np.zeros(len(values)))]
    return [
        (f"{column}={level}", np.array([str(value) == level for value in values], dtype=float))
        for level in levels[1:]
    ]


def _standardise(values: Floats) -> Floats:
    """Return values with mean 0 and length 1; all 0 if they are the same."""
    centred = values - values.mean()
    length = float(np.linalg.norm(centred))
    return centred / length if np.ptp(values) > 1e-9 else np.zeros_like(values)


def _inflation(values: Floats, others: Iterable[Floats]) -> float:
    """Return the variance inflation of a standardised column next to others; maybe infinite."""
    basis: list[Floats] = []
    # A column that is nearly a combination of those before it adds no direction.
    for other in others:
        remaining = _unexplained(other, basis)
        if remaining @ remaining > 1 / LARGEST_INFLATION:
            basis.append(remaining / np.linalg.norm(remaining))
    remaining = _unexplained(values, basis)
    share = float(remaining @ remaining)
    return 1 / share if share > 1 / LARGEST_INFLATION else inf


def _unexplained(values: Floats, basis: Sequence[Floats]) -> Floats:
    """Return values without what an orthonormal basis explains."""
    for direction in basis:
        values = values - (direction @ values) * direction
    return values


def _parts(values: Floats, others: Mapping[str, Floats]) -> tuple[str, ...]:
    """Return the names of the columns that a combination is made of."""
    if not others or not values.any():
        return (INTERCEPT,)
    coefficients = np.linalg.lstsq(np.stack(list(others.values()), axis=1), values, rcond=None)[0]
    return tuple(
        name
        for name, coefficient in zip(others, coefficients, strict=True)
        if abs(coefficient) > _SHARE
    )
