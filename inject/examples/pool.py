"""The rows that members and non-members can be drawn from: near-duplicates are dropped first.

Of near-duplicates only one row stays, inside a dataset across its groups and between datasets, so
no text can stand on both sides. Which row stays is decided by keys, never by content. Another
dataset can change which rows of a dataset remain, where the two share near-duplicates, and moves
nothing else. `inject.examples.membership` draws the two sides from what remains.

Two texts are near-duplicates when the Jaccard similarity of their sets of word 3-grams (single
words for shorter texts) reaches a threshold; `inject.words` says what a word is. All pairs are
compared, exactly, through one sparse matrix product, in blocks, so memory is a block times the
pool; 2,000 texts of 80 words take about a second.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xxhash
from scipy.sparse import csr_array

from inject import keyed
from inject.examples.example import Example, Loss, RowLoss
from inject.examples.random_rounding import round_table
from inject.examples.strata import Stratum, dataset_generator, keyed_strata
from inject.words import run_stops, words_of

# Only this many times the rows asked for are compared, unless too few of them are left: a pool of
# 10,000 rows from which 400 are drawn needs no 10**8 comparisons.
_CANDIDATES = 4


@dataclass(frozen=True, kw_only=True)
class PoolRequest:
    """How many members and non-members are drawn from which rows of one dataset."""

    examples: Sequence[Example]
    """Rows of one dataset, texts distinct."""
    members: int
    """Rows wanted on the member side."""
    nonmembers: int
    """Rows wanted on the non-member side."""
    stratify: bool = True
    """Draw both sides in equal shares from each stratum."""

    @property
    def wanted(self) -> int:
        """Rows wanted on both sides."""
        return self.members + self.nonmembers

    @property
    def dataset(self) -> str:
        """The rows' dataset."""
        return self.examples[0].dataset if self.examples else "?"


@dataclass(frozen=True, kw_only=True)
class UsableRows:
    """The rows of one dataset that sides can be drawn from."""

    request: PoolRequest
    rows: Sequence[Example]
    considered: int
    """Rows looked at, before near-duplicates were dropped."""
    losses: tuple[RowLoss, ...]
    """Rows dropped for near-duplicates in their own dataset and in others."""


def usable_rows(
    requests: Sequence[PoolRequest], *, near_duplicate: float | None, seed: int
) -> list[UsableRows]:
    """Return the rows of every dataset less near-duplicates, inside each and between them.

    Args:
        requests: one for each dataset.
        near_duplicate: similarity from which rows of different groups or datasets count as one;
            None keeps all.
        seed: the experiment's seed.
    """
    if near_duplicate is None:
        return [
            UsableRows(
                request=one,
                rows=one.examples,
                considered=len(one.examples),
                losses=(),
            )
            for one in requests
        ]
    counts = [min(_CANDIDATES * one.wanted, len(one.examples)) for one in requests]
    while True:
        found = _compared(requests, counts, near_duplicate, seed)
        short = [
            number
            for number, one in enumerate(found)
            if len(one.rows) < one.request.wanted and one.considered < len(one.request.examples)
        ]
        if not short:
            return found
        for number in short:
            counts[number] = min(2 * counts[number], len(requests[number].examples))


def _compared(
    requests: Sequence[PoolRequest], counts: Sequence[int], threshold: float, seed: int
) -> list[UsableRows]:
    """Return the rows that are left of so many of each dataset."""
    pools = [_candidates(one, count, seed) for one, count in zip(requests, counts, strict=True)]
    single = [_without_near_duplicates(pool, threshold) for pool in pools]
    left, across = _without_cross_dataset_duplicates([rows for rows, _ in single], threshold, seed)
    return [
        UsableRows(
            request=one,
            rows=left[number],
            considered=len(pools[number]),
            losses=(*single[number][1], *across[number]),
        )
        for number, one in enumerate(requests)
    ]


def _candidates(request: PoolRequest, wanted: int, seed: int) -> list[Example]:
    """Return `wanted` random rows to be compared, each row with the same probability."""
    strata = keyed_strata(request.examples, stream=keyed.Stream.NEAR_DUPLICATE, seed=seed)
    random = dataset_generator(request.dataset, stream=keyed.Stream.NEAR_DUPLICATE, seed=seed)
    return random_rows(strata, wanted, random)


def random_rows(
    strata: Sequence[Stratum], wanted: int, random: np.random.Generator
) -> list[Example]:
    """Return `wanted` rows, the share of each stratum rounded at random, neighbours in its order.

    Each row has the same probability: its stratum's rows are taken from anywhere on, around.
    """
    total = sum(one.size for one in strata)
    table = [[wanted * one.size, (total - wanted) * one.size] for one in strata]
    chosen: list[Example] = []
    for stratum, (count, _) in zip(strata, round_table(table, max(total, 1), random), strict=True):
        rows = [row for group in stratum.groups for row in group.rows]
        start = int(random.integers(len(rows)))
        chosen += [rows[(start + place) % len(rows)] for place in range(count)]
    return chosen


def _without_near_duplicates(
    rows: list[Example], threshold: float
) -> tuple[list[Example], list[RowLoss]]:
    """Drop the later row of every similar pair of rows from different groups."""
    gone: set[int] = set()
    dropped = []
    for pair in near_duplicate_pairs([row.text for row in rows], threshold=threshold):
        first, second = rows[pair.first], rows[pair.second]
        if first.group != second.group and not {pair.first, pair.second} & gone:
            gone.add(pair.second)
            dropped.append(_loss(second, Loss.NEAR_DUPLICATE, first, pair.similarity))
    return [row for place, row in enumerate(rows) if place not in gone], dropped


def _without_cross_dataset_duplicates(
    pools: list[list[Example]], threshold: float, seed: int
) -> tuple[list[list[Example]], list[list[RowLoss]]]:
    """Drop rows until none is similar to one of another dataset; by key, which of them."""
    rows = [(number, row) for number, pool in enumerate(pools) for row in pool]
    similar: dict[int, list[tuple[int, float]]] = defaultdict(list)
    found: list[NearDuplicatePair] = []
    if len(pools) > 1:
        found = near_duplicate_pairs([row.text for _, row in rows], threshold=threshold)
    for pair in found:
        if rows[pair.first][0] != rows[pair.second][0]:
            similar[pair.first].append((pair.second, pair.similarity))
            similar[pair.second].append((pair.first, pair.similarity))
    names = [f"{rows[place][1].dataset}\n{rows[place][1].example_id}" for place in similar]
    words = keyed.words(seed, keyed.Stream.NEAR_DUPLICATE, keyed.item_keys(names)).tolist()
    gone: set[int] = set()
    kept: set[int] = set()
    across: list[list[RowLoss]] = [[] for _ in pools]
    for _, _, place in sorted(zip(words, names, similar, strict=True)):
        twin = next((pair for pair in similar[place] if pair[0] in kept), None)
        if twin is None:
            kept.add(place)
            continue
        gone.add(place)
        number, row = rows[place]
        across[number].append(_loss(row, Loss.NEAR_DUPLICATE_ACROSS, rows[twin[0]][1], twin[1]))
    left: list[list[Example]] = [[] for _ in pools]
    for place, (number, row) in enumerate(rows):
        if place not in gone:
            left[number].append(row)
    return left, across


def _loss(dropped: Example, loss: Loss, kept: Example, similarity: float) -> RowLoss:
    like = f"{kept.dataset} {kept.source_id}"
    return RowLoss(dropped.dataset, dropped.source_id, loss, like, similarity)


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
