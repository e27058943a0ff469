"""Stretches of a document that nearly repeat an example: light edits, sentences in another order.

Word 5-grams that occur in some example are dense in a copy, edited or not, and rare in ordinary
text, so a document is first cut to its dense stretches; in most documents there is none. For
those, MinHash signatures of the sets of word 3-grams and locality-sensitive hashing (datasketch)
propose examples, and the exact Jaccard similarity of the two sets decides. Longer stretches are
also looked at in parts of the examples' sizes, so that a copy among others, or beside other known
text, is found.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from datasketch import MinHash, MinHashLSH

from inject.overlap.settings import SHORTEST
from inject.overlap.words import HashSet, Prefixes, RollingHash

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

SHINGLE = 3
_TELLING = 5
_PERMUTATIONS = 128
_SEED = 1
_SLACK = 0.7
"""Signatures propose from this share of the threshold on; the exact similarity decides."""
_SMOOTHED = 24
_DENSE = 0.2
_STEP = 1.25
_STRIDES = 8


class Near(NamedTuple):
    """A stretch of a document that nearly repeats an example."""

    example: int
    start: int
    """Its first word in the document."""
    stop: int
    """One past its last word."""
    similarity: float
    """Jaccard similarity of the sets of word 3-grams."""


class NearIndex:
    """The 3-grams of many examples.

    Args:
        examples: numbers of each one's words.
        threshold: similarity from which a stretch is a near-duplicate.
        hasher: shared with others that look at the same document.
    """

    def __init__(self, examples: Sequence[I64], threshold: float, hasher: RollingHash) -> None:
        self._threshold = threshold
        self._hasher = hasher
        prefixes = [hasher.prefixes(words) for words in examples]
        self._shingles = [np.unique(hasher.runs(one, SHINGLE)[1]) for one in prefixes]
        self._checked = [len(words) >= SHORTEST for words in examples]
        self._empty = MinHash(num_perm=_PERMUTATIONS, seed=_SEED, hashfunc=int)
        self._lsh = MinHashLSH(
            threshold=threshold * _SLACK, num_perm=_PERMUTATIONS, weights=(0.1, 0.9)
        )
        sizes = []
        for index, shingles in enumerate(self._shingles):
            if self._checked[index]:
                self._lsh.insert(index, self._signature(shingles), check_duplication=False)
                sizes.append(len(examples[index]))
        telling = [hasher.runs(one, _TELLING)[1] for one in prefixes]
        self._known = HashSet(np.concatenate(telling) if telling else np.zeros(0, dtype=np.uint64))
        self._sizes = _size_classes(min(sizes), max(sizes)) if sizes else []
        self._least = min(sizes, default=0) // 2

    def checks(self, example: int) -> bool:
        """Return whether an example is long enough to be looked for."""
        return self._checked[example]

    def near(self, prefixes: Prefixes) -> list[Near]:
        """Return the best stretch for each example that a document nearly repeats.

        Args:
            prefixes: sums of the document's words.
        """
        starts, hashes = self._hasher.runs(prefixes, _TELLING)
        if not self._sizes or not len(starts):
            return []
        known = starts[self._known.holds(hashes)]
        if len(known) < max(self._least - _TELLING, 1) * _DENSE:
            return []
        count = len(prefixes.sums) - 1
        telling = np.zeros(count - _TELLING + 1, dtype=bool)
        telling[known] = True
        starts, hashes = self._hasher.runs(prefixes, SHINGLE)
        values = np.zeros(count - SHINGLE + 1, dtype=np.uint64)
        values[starts] = hashes
        best: dict[int, Near] = {}
        for low, high in self._stretches(telling):
            stretch = values[low:high]
            # A 3-gram with a word that no example has is one of the stretch's, too.
            strange = stretch == 0
            present = np.unique(stretch[~strange])
            total = len(present) + int(strange.sum())
            for index in self._lsh.query(self._signature(present)):
                shared = len(np.intersect1d(present, self._shingles[index], assume_unique=True))
                similarity = shared / (total + len(self._shingles[index]) - shared)
                if similarity >= self._threshold and (
                    index not in best or similarity > best[index].similarity
                ):
                    best[index] = Near(index, low, high + SHINGLE - 1, similarity)
        return list(best.values())

    def _signature(self, shingles: U64) -> MinHash:
        signature = self._empty.copy()
        signature.update_batch((shingles >> np.uint64(32)).tolist())
        return signature

    def _stretches(self, telling: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield where known 5-grams are dense, and parts of it of the examples' sizes.

        As stretches of 3-grams: first one, and one past the last.
        """
        for start, stop in _dense_runs(telling):
            low, high = start, stop + _TELLING - SHINGLE
            if high - low < max(self._least - SHINGLE, 1):
                continue
            yield low, high
            for size in self._sizes:
                length = size - SHINGLE + 1
                if length >= high - low:
                    break
                stride = max(length // _STRIDES, 1)
                for place in range(low, high - length + stride, stride):
                    yield place, min(place + length, high)


def _dense_runs(dense: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the stretches in which at least `_DENSE` of the 5-grams around each are known."""
    sums = np.concatenate([[0], np.cumsum(dense)])
    middle = np.arange(len(dense))
    low = np.maximum(middle - _SMOOTHED // 2, 0)
    high = np.minimum(middle + _SMOOTHED // 2, len(dense))
    full = (sums[high] - sums[low]) >= _DENSE * (high - low)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], full, [False]]).astype(np.int8)))
    runs = []
    for start, stop in edges.reshape(-1, 2).tolist():
        inside = np.flatnonzero(dense[start:stop])
        if len(inside):
            runs.append((start + int(inside[0]), start + int(inside[-1]) + 1))
    return runs


def _size_classes(smallest: int, largest: int) -> list[int]:
    sizes = [smallest]
    while sizes[-1] < largest:
        sizes.append(max(int(sizes[-1] * _STEP), sizes[-1] + 1))
    return sizes
