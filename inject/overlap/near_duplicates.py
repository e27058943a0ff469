"""Stretches of a document that nearly repeat an example: light edits, sentences in another order.

A span, from anywhere to anywhere, nearly repeats an example when the Jaccard similarity of their
sets of word 3-grams reaches the threshold, and they share `_LEAST_SHARED` 3-grams at least (8 words
in a row have as many). The search is exact, no such span is missed, with two exceptions. A
span of more than 2n/t places is not searched: it has that many only if it repeats itself. And words
that no example has are not distinguished, so each repetition of a 3-gram with such a word counts
again, which makes a span look slightly less similar.

Of an example's n 3-grams such a span has t·n, so after leaving out any of them except k of the t·n,
it has k of the others, within n/t places if it repeats none. The index therefore only has an
example's rarest 3-grams, and if k of them are close together in a document, all spans there are
compared. For dissimilar texts, nearly all, the cost is one look-up per word. Memory: 16 bytes a
word of the examples.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np

from inject.keyed import I64, U64
from inject.overlap.hashes import HashSet, Prefixes, RollingHash
from inject.words import WORD_WEIGHT

SHINGLE = 3
_LEAST_SHARED = 6
_COMMON = 8
"""3-grams of more examples than this stay out of the index if possible."""
_LEAST_WITNESSES = 0.25
"""Share of the t·n that must be witnessed by the index all the same."""


class NearDuplicateIndex:
    """The 3-grams of many examples.

    Args:
        examples: sums of each one's units.
        threshold: similarity from which a span is a near-duplicate.
        hasher: shared with others that look at the same document.
    """

    def __init__(self, examples: Sequence[Prefixes], threshold: float, hasher: RollingHash) -> None:
        self._threshold = threshold
        self._hasher = hasher
        self._shingles = [np.unique(hasher.runs(prefixes, SHINGLE).hashes) for prefixes in examples]
        count = len(examples)
        self._witnesses = np.ones(count, dtype=np.int64)
        self._reach = np.zeros(count, dtype=np.int64)
        sizes = np.array([len(shingles) for shingles in self._shingles], dtype=np.int64)
        all_shingles = np.concatenate([*self._shingles, np.zeros(0, dtype=np.uint64)])
        owners = np.repeat(np.arange(count), sizes)
        _, inverse, frequency = np.unique(all_shingles, return_inverse=True, return_counts=True)
        often = frequency[inverse]
        is_witness = np.zeros(len(all_shingles), dtype=bool)
        # By example, and within it from the rarest to the most common 3-gram.
        order = np.lexsort((all_shingles, often, owners))
        first = 0
        for index, size in enumerate(sizes.tolist()):
            needed = max(ceil(threshold * size - 1e-9), _LEAST_SHARED)
            own = order[first : first + size]
            first += size
            if needed > size:
                continue
            least = max(1, ceil(_LEAST_WITNESSES * needed))
            rare = max(int(np.searchsorted(often[own], _COMMON, side="right")), 0)
            taken = min(max(rare, size - needed + least), size)
            is_witness[own[:taken]] = True
            self._witnesses[index] = needed - (size - taken)
            self._reach[index] = ceil(size / threshold)
        order = np.flatnonzero(is_witness)[np.argsort(all_shingles[is_witness], kind="stable")]
        self._hashes, self._owners = all_shingles[order], owners[order]
        self._known = HashSet(self._hashes)
        self._offsets = np.append(self._hashes.searchsorted(self._known.sorted), len(self._hashes))
        self._least = int(self._witnesses[self._reach > 0].min(initial=1 << 62))

    def find(self, prefixes: Prefixes) -> list[tuple[int, int, int, float]]:
        """Return the most similar span for each example that a document nearly repeats.

        The example, the first unit of the span in the document, one past its last, and
        the Jaccard similarity of the sets of word 3-grams.

        Args:
            prefixes: sums of the document's units.
        """
        runs = self._hasher.runs(prefixes, SHINGLE)
        if len(runs.starts) < self._least:
            return []
        is_known = self._known.contains(runs.hashes)
        if np.count_nonzero(is_known) < self._least:
            return []
        candidates = self._candidates(runs.starts[is_known], runs.hashes[is_known])
        if not len(candidates):
            return []
        order = runs.hashes.argsort(kind="stable")
        hashes, places = runs.hashes[order], runs.starts[order]
        before = _previous_positions(hashes, places, runs.possible)
        spans = []
        for example in candidates.tolist():
            positions = _places_of(hashes, places, self._shingles[example])
            best = self._span(example, positions, before)
            if best is not None:
                start, last, similarity = best
                spans.append((example, start, self._stop(prefixes, last), similarity))
        return spans

    def _candidates(self, places: I64, hashes: U64) -> I64:
        """Return the examples that have enough witnesses close together."""
        at = self._known.sorted.searchsorted(hashes)
        low = self._offsets[at]
        counts = self._offsets[at + 1] - low
        total = int(counts.sum())
        indices = np.arange(total)
        owners = self._owners[indices + (low - counts.cumsum() + counts).repeat(counts)]
        order = owners.argsort(kind="stable")
        owners, positions = owners[order], places.repeat(counts)[order]
        last = indices + self._witnesses[owners] - 1
        (fits,) = (last < total).nonzero()
        last, own = last[fits], owners[fits]
        close = (owners[last] == own) & (positions[last] - positions[fits] <= 2 * self._reach[own])
        return np.unique(own[close])

    def _span(self, example: int, positions: I64, before: I64) -> tuple[int, int, float] | None:
        """Return the first and last 3-gram of the most similar span, and its similarity.

        Args:
            example: which one.
            positions: its 3-grams in the document, ascending.
            before: for each 3-gram of the document its previous position, or -1.
        """
        size = len(self._shingles[example])
        needed = max(ceil(self._threshold * size - 1e-9), _LEAST_SHARED)
        reach = 2 * int(self._reach[example])
        best: tuple[int, int, float] | None = None
        limits = np.searchsorted(positions, positions + reach, side="right")
        for index in np.flatnonzero(limits - np.arange(len(positions)) >= needed).tolist():
            start, inside = int(positions[index]), positions[index : limits[index]]
            # A 3-gram that occurred before the start, but not since, is new to the span.
            new = before[start : inside[-1] + 1] < start
            distinct = np.cumsum(new)[inside - start]
            shared = np.cumsum(new[inside - start])
            similarity = np.where(shared >= _LEAST_SHARED, shared / (distinct + size - shared), 0.0)
            top = int(np.argmax(similarity))
            if similarity[top] >= self._threshold - 1e-9 and (
                best is None or similarity[top] > best[2]
            ):
                best = start, int(inside[top]), float(similarity[top])
        return best

    def _stop(self, prefixes: Prefixes, last: int) -> int:
        """Return the end of the 3-gram that starts at `last`."""
        if prefixes.weights is None:
            return last + SHINGLE
        end_weight = prefixes.weights[last] + SHINGLE * WORD_WEIGHT
        return int(np.searchsorted(prefixes.weights, end_weight))


def _places_of(hashes: U64, places: I64, shingles: U64) -> I64:
    """Return the positions of any of some 3-grams, ascending, given a document's in hash order."""
    low = hashes.searchsorted(shingles, side="left")
    counts = hashes.searchsorted(shingles, side="right") - low
    indices = np.arange(int(counts.sum()))
    return np.sort(places[indices + (low - counts.cumsum() + counts).repeat(counts)])


def _previous_positions(hashes: U64, places: I64, count: int) -> I64:
    """Return the previous position of each of `count` 3-grams; -1 for the first of its kind.

    A 3-gram with a unit that no example has differs from all others, so it also counts as first.
    """
    previous = np.full(count, -1, dtype=np.int64)
    same = hashes[1:] == hashes[:-1]
    previous[places[1:][same]] = places[:-1][same]
    return previous
