"""Words as numbers, and the rolling hash of every run of n of them.

Only words that occur in an example have a number; all others are 0, and no run with a 0 can be
shared. The hash is a polynomial over random 64-bit values of the words, from prefix sums: three
multiplications a word, whatever n is. Who uses it compares the words themselves where two hashes
agree, so nothing rests on the hash but speed.
"""

import re
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

WORD = re.compile(r"\w+")

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_LEAST_BITS, _MOST_BITS = 12, 27


class Vocabulary:
    """The words of all examples, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def add(self, text: str) -> I64:
        """Return the numbers of a text's words, giving new words new numbers."""
        numbers = self._numbers
        return np.array(
            [numbers.setdefault(word, len(numbers) + 1) for word in WORD.findall(text.lower())],
            dtype=np.int64,
        )

    def known(self, text: str) -> I64:
        """Return the numbers of a text's words, 0 for words that no example has."""
        found = WORD.findall(text.lower())
        return np.array(list(map(self._numbers.get, found, repeat(0))), dtype=np.int64)


class Prefixes(NamedTuple):
    """What the hashes of all runs of one text are made of."""

    sums: U64
    """Sums of the words' values times powers of the base, shape [words + 1]."""
    unknown: I64
    """How many words before each place have no number, shape [words + 1]."""


class RollingHash:
    """Hashes of runs of words; grows its tables to the longest text and the largest number."""

    def __init__(self) -> None:
        self._powers = np.ones(1, dtype=np.uint64)
        self._inverse = np.ones(1, dtype=np.uint64)
        self._values = _scattered(np.arange(1, dtype=np.int64))

    def prefixes(self, words: I64) -> Prefixes:
        """Return the sums from which the hash of any run of a text follows.

        Args:
            words: numbers of the text's words, shape [n].
        """
        if len(words) >= len(self._powers):
            size = 1 << len(words).bit_length()
            self._powers, self._inverse = _powers(_BASE, size), _powers(_INVERSE, size)
        largest = int(words.max(initial=0))
        if largest >= len(self._values):
            self._values = _scattered(np.arange(1 << largest.bit_length(), dtype=np.int64))
        sums = np.zeros(len(words) + 1, dtype=np.uint64)
        np.cumsum(self._values[words] * self._powers[: len(words)], out=sums[1:])
        unknown = np.zeros(len(words) + 1, dtype=np.int64)
        np.cumsum(words == 0, out=unknown[1:])
        return Prefixes(sums, unknown)

    def runs(self, prefixes: Prefixes, size: int) -> tuple[I64, U64]:
        """Return the hash of every run of `size` known words.

        Args:
            prefixes: of the text.
            size: words in a run.

        Returns:
            Where the runs start, ascending, and their hashes, both of shape [runs].
        """
        if len(prefixes.sums) <= size:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
        starts = np.flatnonzero(prefixes.unknown[size:] == prefixes.unknown[:-size])
        sums = prefixes.sums
        return starts, (sums[starts + size] - sums[starts]) * self._inverse[starts]


class HashSet:
    """Which of many hashes are in a fixed set: a table of bits first, then a binary search."""

    def __init__(self, hashes: U64) -> None:
        self.sorted = np.unique(hashes)
        # Eight places a hash or more: seven in eight of those that are not held end here.
        bits = min(max(len(self.sorted).bit_length() + 3, _LEAST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._seen = np.zeros(1 << bits, dtype=bool)
        self._seen[self._slot(self.sorted)] = True

    def holds(self, hashes: U64) -> npt.NDArray[np.bool_]:
        """Return which hashes are in the set, shape [len(hashes)]."""
        found = self._seen[self._slot(hashes)]
        maybe = np.flatnonzero(found)
        if len(maybe):
            place = np.searchsorted(self.sorted, hashes[maybe])
            place = np.minimum(place, len(self.sorted) - 1)
            found[maybe] = self.sorted[place] == hashes[maybe]
        return found

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


def _scattered(words: I64) -> U64:
    """Return a random-looking 64-bit value for each word (splitmix64)."""
    value = words.astype(np.uint64) * np.uint64(_BASE)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
