"""Runs of n words that a document shares with an example, exactly.

Examples with fewer than n words, but at least `SHORTEST`, are looked for whole, and so are answers
of that length: by their first `SHORTEST` words, then unit by unit. Shorter ones occur by chance and
are not looked for. Memory: 16 bytes for each word of the examples.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inject.keyed import I64, U64
from inject.overlap.hashes import HashSet, Prefixes, RollingHash
from inject.overlap.settings import SHORTEST


class Pattern(NamedTuple):
    """Units that are looked for: an example's, or an answer's."""

    example: int
    """Index of the example."""
    reading: int
    """Which reading of the example the units are of."""
    first: int
    """Which unit of that reading is the pattern's first."""
    words: I64
    """The units' numbers."""
    prefixes: Prefixes
    """Their sums."""


class Shared(NamedTuple):
    """The overlap of one document with one example."""

    example: int
    reading: int
    """Of the example."""
    document_start: int
    """First unit of the longest shared run, in the document."""
    example_start: int
    """First unit of it in the example."""
    length: int
    """Units in it."""
    share: float
    """Share of the example's runs that occur in the document."""


_Match = tuple[int, int, int, int]
"""A pattern, the start of one of its runs in it and in the document, and the run's length."""


@dataclass(frozen=True)
class _Table:
    """Runs of one length: sorted hashes, and the position of each run."""

    size: int
    """Words in a run."""
    whole: bool
    """Whether the rest of the pattern must follow."""
    hashes: U64
    pattern: I64
    start: I64
    stop: I64
    known: HashSet


class NgramIndex:
    """The runs of words of many patterns.

    Args:
        patterns: to search for.
        size: words in a run; shorter patterns are looked for whole.
        hasher: shared with others that look at the same document.
        max_owners: of a run that more patterns have, only the first so many are found by it, so
            that a phrase of all costs no more than one of a few; None finds all.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        size: int,
        hasher: RollingHash,
        *,
        max_owners: int | None = None,
    ) -> None:
        self._patterns = patterns
        self._max_owners = max_owners
        self._hasher = hasher
        self._runs = np.ones(len(patterns), dtype=np.int64)
        shortest = min(SHORTEST, size)
        long: list[int] = []
        short: list[int] = []
        for index, pattern in enumerate(patterns):
            runs = hasher.runs(pattern.prefixes, size).possible
            if runs:
                self._runs[index] = runs
                long.append(index)
            elif hasher.runs(pattern.prefixes, shortest).possible:
                short.append(index)
        self._tables = [self._table(long, size, whole=False)] if long else []
        self._tables += [self._table(short, shortest, whole=True)] if short else []

    def shared(self, words: I64, prefixes: Prefixes) -> list[Shared]:
        """Return the overlap of a document with each example that shares a run with it.

        Args:
            words: numbers of the document's units.
            prefixes: their sums.
        """
        by_example: dict[int, list[_Match]] = defaultdict(list)
        for table in self._tables:
            for match in self._matches(table, words, prefixes):
                by_example[self._patterns[match[0]].example].append(match)
        return [self._extend(words, example, matches) for example, matches in by_example.items()]

    def _table(self, patterns: list[int], size: int, *, whole: bool) -> _Table:
        parts = []
        for index in patterns:
            runs = self._hasher.runs(self._patterns[index].prefixes, size)
            selection = slice(1) if whole else slice(None)
            starts = runs.starts[selection]
            parts.append(
                (runs.hashes[selection], np.full(len(starts), index), starts, runs.stops[selection])
            )
        hashes, owners, starts, stops = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(hashes, kind="stable")
        if self._max_owners is not None:
            ordered = hashes[order]
            before = np.arange(len(order)) - ordered.searchsorted(ordered)
            order = order[before < self._max_owners]
        return _Table(
            size=size,
            whole=whole,
            hashes=hashes[order],
            pattern=owners[order],
            start=starts[order],
            stop=stops[order],
            known=HashSet(hashes),
        )

    def _matches(self, table: _Table, words: I64, prefixes: Prefixes) -> Iterator[_Match]:
        """Yield the positions of the table's runs in the document, with units compared."""
        runs = self._hasher.runs(prefixes, table.size)
        if not len(runs.starts):
            return
        hit = table.known.contains(runs.hashes)
        for place, value in zip(runs.starts[hit].tolist(), runs.hashes[hit], strict=True):
            low = int(np.searchsorted(table.hashes, value, side="left"))
            high = int(np.searchsorted(table.hashes, value, side="right"))
            for row in range(low, high):
                pattern, start = int(table.pattern[row]), int(table.start[row])
                own = self._patterns[pattern].words
                run = own if table.whole else own[start : int(table.stop[row])]
                if np.array_equal(run, words[place : place + len(run)]):
                    yield pattern, start, place, len(run)

    def _extend(self, words: I64, example: int, matches: list[_Match]) -> Shared:
        longest = 0, matches[0][0], 0, 0
        starts: dict[int, set[int]] = defaultdict(set)
        for number, start, place, length in matches:
            starts[number].add(start)
            own = self._patterns[number].words
            limit = min(len(words) - place, len(own) - start)
            while length < limit and words[place + length] == own[start + length]:
                length += 1
            if length > longest[0]:
                longest = length, number, start, place
        length, number, start, place = longest
        pattern = self._patterns[number]
        shares = [len(starts[index]) / self._runs[index] for index in starts]
        return Shared(
            example=example,
            reading=pattern.reading,
            document_start=place,
            example_start=pattern.first + start,
            length=length,
            share=float(max(shares)),
        )
