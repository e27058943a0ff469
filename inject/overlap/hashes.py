"""Words as numbers, and the rolling hash of every run of n of them.

Only words that occur in an example have a number; all others are 0, and no run with a 0 can be
shared. The hash is a polynomial over random 64-bit values of the words, from prefix sums: three
multiplications per word, whatever n is. Callers compare the words themselves if two hashes agree,
so only speed depends on the hash.

A run of n words ends with the unit that reaches the weight of n words (`inject.words`). Its end
depends only on its units, so equal runs are found at any position.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inject.keyed import I64, U64
from inject.words import WORD_WEIGHT, weight

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_NONE = np.zeros(0, dtype=np.uint64)
_LEAST_BITS, _MOST_BITS = 12, 27


class Vocabulary:
    """The words of all examples, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._weights = [WORD_WEIGHT]
        self._light = False
        self._array = np.zeros(0, dtype=np.int64)

    def add(self, units: Sequence[str]) -> I64:
        """Return the numbers of a text's units, giving new ones new numbers."""
        numbers = []
        for unit in units:
            number = self._numbers.get(unit)
            if number is None:
                number = self._numbers[unit] = len(self._numbers) + 1
                self._weights.append(weight(unit))
                self._light |= self._weights[-1] != WORD_WEIGHT
            numbers.append(number)
        return np.array(numbers, dtype=np.int64)

    def known(self, units: Sequence[str]) -> I64:
        """Return the numbers of a text's units, 0 for those that no example has."""
        return np.fromiter(map(self._numbers.get, units, repeat(0)), np.int64, len(units))

    def weights(self, numbers: I64) -> I64 | None:
        """Return the weight of each numbered unit; None if all of them are words."""
        if not self._light:
            return None
        if len(self._array) != len(self._weights):
            self._array = np.array(self._weights, dtype=np.int64)
        unit_weights = self._array[numbers]
        return None if (unit_weights == WORD_WEIGHT).all() else unit_weights


class Prefixes(NamedTuple):
    """The prefix sums from which the hashes of all runs of one text are computed."""

    sums: U64
    """Sums of the units' values times powers of the base, shape [units + 1]."""
    unknown: I64
    """Number of unknown units before each place, shape [units + 1]."""
    weights: I64 | None
    """Weight of the units before each place, shape [units + 1]; None if all are words."""


class Runs(NamedTuple):
    """The runs of known units of one text; all arrays have the shape [runs]."""

    starts: I64
    """Ascending."""
    stops: I64
    hashes: U64
    possible: int
    """Number of runs in the text, including those with unknown units: one per start from 0 on."""


class RollingHash:
    """Hashes of runs of words; grows its tables to the longest text and the largest number."""

    def __init__(self) -> None:
        self._powers = np.ones(1, dtype=np.uint64)
        self._inverse = np.ones(1, dtype=np.uint64)
        self._values = _scatter(np.arange(1, dtype=np.int64))

    def prefixes(self, words: I64, weights: I64 | None = None) -> Prefixes:
        """Return the sums from which the hash of any run of a text follows.

        Args:
            words: numbers of the text's units, shape [n].
            weights: of the units, shape [n]; None if all are words.
        """
        if len(words) >= len(self._powers):
            size = 1 << len(words).bit_length()
            self._powers, self._inverse = _powers(_BASE, size), _powers(_INVERSE, size)
        largest = int(words.max(initial=0))
        if largest >= len(self._values):
            self._values = _scatter(np.arange(1 << largest.bit_length(), dtype=np.int64))
        sums = np.zeros(len(words) + 1, dtype=np.uint64)
        (self._values[words] * self._powers[: len(words)]).cumsum(out=sums[1:])
        unknown = np.zeros(len(words) + 1, dtype=np.int64)
        (words == 0).cumsum(out=unknown[1:])
        if weights is None:
            return Prefixes(sums, unknown, None)
        heavy = np.zeros(len(words) + 1, dtype=np.int64)
        weights.cumsum(out=heavy[1:])
        return Prefixes(sums, unknown, heavy)

    def runs(self, prefixes: Prefixes, size: int) -> Runs:
        """Return the hash of every run of `size` words whose units are all known.

        Args:
            prefixes: of the text.
            size: words in a run.
        """
        sums, unknown, weights = prefixes
        if weights is None:
            possible = max(len(sums) - size, 0)
            (starts,) = (unknown[size:] == unknown[:possible]).nonzero()
            stops = starts + size
        else:
            ends = weights.searchsorted(weights[:-1] + size * WORD_WEIGHT)
            possible = int(ends.searchsorted(len(weights)))
            ends = ends[:possible]
            (starts,) = (unknown[ends] == unknown[:possible]).nonzero()
            stops = ends[starts]
        if not len(starts):
            return Runs(starts, stops, _NONE, possible)
        hashes = (sums[stops] - sums[starts]) * self._inverse[starts]
        return Runs(starts, stops, hashes, possible)


class HashSet:
    """Which of many hashes are in a fixed set: a table of bits first, then a binary search."""

    def __init__(self, hashes: U64) -> None:
        self.sorted = np.unique(hashes)
        # Eight places a hash or more: seven in eight of the absent ones end here.
        bits = min(max(len(self.sorted).bit_length() + 3, _LEAST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._seen = np.zeros(1 << bits, dtype=bool)
        self._seen[self._slot(self.sorted)] = True

    def contains(self, hashes: U64) -> npt.NDArray[np.bool_]:
        """Return which hashes are in the set, shape [len(hashes)]."""
        contained = self._seen[self._slot(hashes)]
        (maybe,) = contained.nonzero()
        if len(maybe):
            place = self.sorted.searchsorted(hashes[maybe])
            place = np.minimum(place, len(self.sorted) - 1)
            contained[maybe] = self.sorted[place] == hashes[maybe]
        return contained

    def _slot(self, hashes: U64) -> I64:
        return (hashes >> self._shift).astype(np.int64)


def _powers(base: int, size: int) -> U64:
    """Return base**0 … base**(size-1) modulo 2**64, by doubling."""
    powers = np.ones(size, dtype=np.uint64)
    done = 1
    while done < size:
        step = np.uint64(pow(base, done, 1 << 64))
        powers[done : 2 * done] = powers[: min(done, size - done)] * step
        done *= 2
    return powers


def _scatter(words: I64) -> U64:
    """Return a random-looking 64-bit value for each word (splitmix64)."""
    value = words.astype(np.uint64) * np.uint64(_BASE)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
