"""Runs of n words that a document shares with an example, exactly.

Examples with fewer than n words, but at least `SHORTEST`, are looked for whole, and so are answers
of that length: a run of as many words as they have. Shorter ones occur by chance and are not
looked for. Memory: 16 bytes for each word of the examples.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inject.overlap.settings import SHORTEST
from inject.overlap.words import HashSet, Prefixes, RollingHash

I64 = npt.NDArray[np.int64]


class Pattern(NamedTuple):
    """Words that are looked for: an example's, or an answer's."""

    example: int
    """Index of the example."""
    first: int
    """Which word of the example is the pattern's first."""
    words: I64


class Shared(NamedTuple):
    """What one document shares with one example."""

    example: int
    document_start: int
    """First word of the longest shared run, in the document."""
    example_start: int
    """First word of it in the example."""
    length: int
    """Words in it."""
    share: float
    """Share of the example's runs that stand in the document."""


@dataclass
class _Table:
    """All runs of one length: sorted hashes, and where each run stands."""

    hashes: npt.NDArray[np.uint64]
    pattern: I64
    start: I64
    known: HashSet


class NgramIndex:
    """The runs of words of many patterns.

    Args:
        patterns: what is looked for.
        size: words in a run; shorter patterns are looked for whole.
        hasher: shared with others that look at the same document.
    """

    def __init__(self, patterns: Sequence[Pattern], size: int, hasher: RollingHash) -> None:
        self._patterns = patterns
        self._hasher = hasher
        self._size = size
        by_size: dict[int, list[int]] = defaultdict(list)
        for index, pattern in enumerate(patterns):
            length = len(pattern.words)
            if length >= min(SHORTEST, size):
                by_size[min(length, size)].append(index)
        self._tables = {length: self._table(found, length) for length, found in by_size.items()}

    def checks(self, pattern: Pattern) -> bool:
        """Return whether a pattern is long enough to be looked for."""
        return len(pattern.words) >= min(SHORTEST, self._size)

    def shared(self, words: I64, prefixes: Prefixes) -> list[Shared]:
        """Return what a document shares with each example that it shares a run with.

        Args:
            words: numbers of the document's words.
            prefixes: their sums.
        """
        places: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for size, table in self._tables.items():
            for pattern, start, place in self._matches(table, words, prefixes, size):
                example = self._patterns[pattern].example
                places[example].append((place, pattern, start, size))
        return [self._longest(words, example, found) for example, found in places.items()]

    def _table(self, patterns: list[int], size: int) -> _Table:
        hashes, owners, starts = [], [], []
        for index in patterns:
            prefixes = self._hasher.prefixes(self._patterns[index].words)
            start, found = self._hasher.runs(prefixes, size)
            hashes.append(found)
            owners.append(np.full(len(start), index))
            starts.append(start)
        every = np.concatenate(hashes)
        order = np.argsort(every, kind="stable")
        return _Table(
            hashes=every[order],
            pattern=np.concatenate(owners)[order],
            start=np.concatenate(starts)[order],
            known=HashSet(every),
        )

    def _matches(
        self, table: _Table, words: I64, prefixes: Prefixes, size: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield pattern, run's start in it, and start in the document; words compared."""
        starts, hashes = self._hasher.runs(prefixes, size)
        if not len(starts):
            return
        hit = table.known.holds(hashes)
        for place, value in zip(starts[hit].tolist(), hashes[hit], strict=True):
            low = int(np.searchsorted(table.hashes, value, side="left"))
            high = int(np.searchsorted(table.hashes, value, side="right"))
            run = words[place : place + size]
            for row in range(low, high):
                pattern, start = int(table.pattern[row]), int(table.start[row])
                if np.array_equal(self._patterns[pattern].words[start : start + size], run):
                    yield pattern, start, place

    def _longest(self, words: I64, example: int, found: list[tuple[int, int, int, int]]) -> Shared:
        best = (0, 0, 0)
        for place, pattern, start, size in found:
            other = self._patterns[pattern].words
            length = size
            limit = min(len(words) - place, len(other) - start)
            while length < limit and words[place + length] == other[start + length]:
                length += 1
            if length > best[0]:
                best = (length, place, self._patterns[pattern].first + start)
        whole = {pattern for _, pattern, _, _ in found}
        shares = []
        for pattern in whole:
            size = min(len(self._patterns[pattern].words), self._size)
            runs = len(self._patterns[pattern].words) - size + 1
            shares.append(len({start for _, one, start, _ in found if one == pattern}) / runs)
        return Shared(example, best[1], best[2], best[0], max(shares))
