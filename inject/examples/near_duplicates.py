"""Near-duplicates inside one pool of examples, exactly, by word 3-grams.

Two texts are near-duplicates when the Jaccard similarity of their sets of word 3-grams (single
words for shorter texts) reaches a threshold; `inject.words` says what a word is. All
pairs are compared through one sparse matrix product, in blocks, so memory is a block times the
pool; 2,000 texts of 80 words take about a second. Streaming over whole corpora is not this
module's business.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xxhash
from scipy.sparse import csr_array

from inject.words import run_stops, words_of

_GRAM = 3
_BLOCK = 512


class NearDuplicatePair(NamedTuple):
    """Two similar texts, by index, the smaller index first."""

    first: int
    second: int
    similarity: float


def word_grams(text: str) -> set[int]:
    """Return the hashed word 3-grams of a text; its single words when it has fewer than 3."""
    words = words_of(text)
    stops = run_stops(words, _GRAM) or range(1, len(words) + 1)
    return {
        xxhash.xxh64_intdigest(" ".join(words[start:stop]).encode())
        for start, stop in enumerate(stops)
    }


def near_duplicate_pairs(texts: Sequence[str], *, threshold: float) -> list[NearDuplicatePair]:
    """Return all pairs with similarity >= threshold, sorted by their indices."""
    grams = [word_grams(text) for text in texts]
    sizes = np.array([len(item) for item in grams], dtype=np.int64)
    columns: dict[int, int] = {}
    indices = [columns.setdefault(gram, len(columns)) for item in grams for gram in item]
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    matrix = csr_array(
        (np.ones(len(indices), dtype=np.int32), np.array(indices, dtype=np.int64), pointers),
        shape=(len(texts), max(len(columns), 1)),
    )
    pairs: list[NearDuplicatePair] = []
    for start in range(0, len(texts), _BLOCK):
        common = (matrix[start : start + _BLOCK] @ matrix.T).tocoo()
        first, second = common.row + start, common.col
        similarity = common.data / (sizes[first] + sizes[second] - common.data)
        keep = (first < second) & (similarity >= threshold)
        pairs.extend(
            NearDuplicatePair(int(a), int(b), float(value))
            for a, b, value in zip(first[keep], second[keep], similarity[keep], strict=True)
        )
    return sorted(pairs)
