"""The rows that sides are drawn from, less near-duplicates, and the rows that are held out.

Of near-duplicates only one row stays, inside a dataset across its groups and between datasets, so
no text can be on both sides. Which row stays is decided by keys, never by content. Another dataset
can change which rows of a dataset remain, where the two share near-duplicates, and moves nothing
else. `inject.examples.membership` draws the two sides from what remains.

Held-out rows are neither trained on nor scored: detectors take shots, calibration and populations
from them. They are drawn after both sides, from rows that share no group or text with a scored row
of any dataset and are not near-duplicates of one: requesting them moves no member and no
non-member. Of near-duplicates among them one stays, decided by keys. Each remaining row has the
same probability, the share of each stratum rounded at random, so non-members and held-out rows
differ in nothing but what the exclusion of whole groups brings: where groups are large and few rows
to spare, held-out rows come from smaller groups.

Two texts are near-duplicates when the Jaccard similarity of their sets of word 3-grams (single
words for shorter texts) reaches a threshold; `inject.words` says what a word is. All pairs are
compared, exactly, through one sparse matrix product, in blocks, so memory is a block times the
pool; 2,000 texts of 80 words take about a second.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xxhash
from scipy.sparse import csr_array

from inject import keyed
from inject.errors import InputError
from inject.examples.example import Example, Loss, RowLoss
from inject.examples.random_rounding import round_table
from inject.examples.strata import Stratum, dataset_generator, keyed_strata
from inject.words import run_stops, words_of

# Only this many times the requested rows are compared, unless too few of them remain: a pool of
# 10,000 rows from which 400 are drawn needs no 10**8 comparisons.
_CANDIDATES = 4
_CANDIDATE_DRAW, _FINAL_DRAW = 0, 1


@dataclass(frozen=True, kw_only=True)
class PoolRequest:
    """How many rows of one dataset are drawn for what."""

    examples: Sequence[Example]
    """Rows of one dataset, texts distinct."""
    members: int
    """Rows wanted on the member side."""
    nonmembers: int
    """Rows wanted on the non-member side."""
    stratify: bool = True
    """Draw in equal shares from each stratum."""
    held_out: int = 0
    """Rows held out."""
    further: Sequence[Example] = ()
    """Rows that can be held out, but are on no side."""

    @property
    def dataset(self) -> str:
        """The rows' dataset."""
        return self.examples[0].dataset if self.examples else "?"


@dataclass(frozen=True, kw_only=True)
class UsableRows:
    """The rows of one dataset that can be drawn from."""

    request: PoolRequest
    rows: Sequence[Example]
    considered: int
    """Rows looked at, before near-duplicates were dropped."""
    losses: tuple[RowLoss, ...] = ()
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
            UsableRows(request=request, rows=request.examples, considered=len(request.examples))
            for request in requests
        ]
    return _enough(
        [request.members + request.nonmembers for request in requests],
        [len(request.examples) for request in requests],
        lambda counts: _compared(requests, counts, near_duplicate, seed),
    )


def _enough(
    wanted: Sequence[int],
    available: Sequence[int],
    look_at: Callable[[Sequence[int]], list[UsableRows]],
) -> list[UsableRows]:
    """Return the usable rows among as many rows of each dataset as leave enough of them."""
    counts = [min(_CANDIDATES * rows, most) for rows, most in zip(wanted, available, strict=True)]
    while True:
        usable = look_at(counts)
        short = [
            number
            for number, one in enumerate(usable)
            if len(one.rows) < wanted[number] and counts[number] < available[number]
        ]
        if not short:
            return usable
        for number in short:
            counts[number] = min(2 * counts[number], available[number])


def _compared(
    requests: Sequence[PoolRequest], counts: Sequence[int], threshold: float, seed: int
) -> list[UsableRows]:
    """Return the rows that are left of so many of each dataset."""
    pools = [_candidates(one, count, seed) for one, count in zip(requests, counts, strict=True)]
    single = [_without_near_duplicates(pool, threshold) for pool in pools]
    left, across = _without_cross_dataset_duplicates([rows for rows, _ in single], threshold, seed)
    return [
        UsableRows(
            request=request,
            rows=left[number],
            considered=len(pools[number]),
            losses=(*single[number][1], *across[number]),
        )
        for number, request in enumerate(requests)
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
    texts = [row.text for row in rows]
    for earlier, later, similarity in near_duplicate_pairs(texts, threshold=threshold):
        first, second = rows[earlier], rows[later]
        if first.group != second.group and not {earlier, later} & gone:
            gone.add(later)
            dropped.append(_loss(second, Loss.NEAR_DUPLICATE, first, similarity))
    return [row for place, row in enumerate(rows) if place not in gone], dropped


def _without_cross_dataset_duplicates(
    pools: list[list[Example]], threshold: float, seed: int
) -> tuple[list[list[Example]], list[list[RowLoss]]]:
    """Drop rows until none is similar to one of another dataset; by key, which of them."""
    rows = [row for pool in pools for row in pool]
    similar: Mapping[int, Mapping[int, float]] = {}
    if len(pools) > 1:
        similar = _alike(rows, threshold, lambda one, other: one.dataset != other.dataset)
    names = [f"{rows[place].dataset}\n{rows[place].example_id}" for place in similar]
    words = keyed.words(seed, keyed.Stream.NEAR_DUPLICATE, keyed.item_keys(names)).tolist()
    kept: set[int] = set()
    dropped: dict[int, RowLoss] = {}
    for _, _, place in sorted(zip(words, names, similar, strict=True)):
        twin = next((other for other in similar[place] if other in kept), None)
        if twin is None:
            kept.add(place)
            continue
        loss, alike = Loss.NEAR_DUPLICATE_ACROSS, similar[place][twin]
        dropped[place] = _loss(rows[place], loss, rows[twin], alike)
    places = iter(range(len(rows)))
    left = [[row for row in pool if next(places) not in dropped] for pool in pools]
    datasets = [pool[0].dataset if pool else "" for pool in pools]
    across = [[loss for loss in dropped.values() if loss.dataset == one] for one in datasets]
    return left, across


def _alike(
    rows: Sequence[Example], threshold: float, apart: Callable[[Example, Example], bool]
) -> dict[int, dict[int, float]]:
    """Return the similar rows of each row that has any, by place, among those that are apart."""
    similar: dict[int, dict[int, float]] = defaultdict(dict)
    for first, second, similarity in near_duplicate_pairs(
        [row.text for row in rows], threshold=threshold
    ):
        if apart(rows[first], rows[second]):
            similar[first][second] = similar[second][first] = similarity
    return dict(similar)


def _loss(dropped: Example, loss: Loss, kept: Example, similarity: float) -> RowLoss:
    like = f"{kept.dataset} {kept.source_id}"
    return RowLoss(dropped.dataset, dropped.source_id, loss, like, similarity)


def draw_held_out(
    requests: Sequence[PoolRequest],
    scored: Sequence[Example],
    *,
    near_duplicate: float | None,
    seed: int,
) -> list[list[Example]]:
    """Draw the held-out rows of every dataset.

    Args:
        requests: one for each dataset.
        scored: members and non-members of all datasets.
        near_duplicate: similarity from which rows of different groups or datasets count as one;
            None compares none, but equal texts are one in any case.
        seed: the experiment's seed.

    Returns:
        For each dataset its rows, as non-members of the split `tune`, in random order.

    Raises:
        InputError: where the rows of a dataset do not suffice, saying how many there are.
    """
    taken = {(row.dataset, row.group) for row in scored}
    texts = {row.example_id for row in scored}
    free = [
        [
            row
            for row in (*request.examples, *request.further)
            if request.held_out
            and (row.dataset, row.group) not in taken
            and row.example_id not in texts
        ]
        for request in requests
    ]

    def look_at(counts: Sequence[int]) -> list[UsableRows]:
        candidates = [
            _held_out_rows(*asked, seed, _CANDIDATE_DRAW)
            for asked in zip(requests, free, counts, strict=True)
        ]
        distinct = _distinct(candidates, scored, near_duplicate, seed)
        return [
            UsableRows(request=request, rows=rows, considered=count)
            for request, rows, count in zip(requests, distinct, counts, strict=True)
        ]

    usable = _enough([request.held_out for request in requests], [*map(len, free)], look_at)
    held_out = []
    for request, rows, one in zip(requests, free, usable, strict=True):
        left, given = len(one.rows), len(request.examples) + len(request.further)
        if left < request.held_out:
            raise InputError(
                f"{request.held_out} held-out rows requested, but only {left} rows can be held "
                f"out: of {given} usable rows {given - len(rows)} are members or non-members or "
                f"share a passage with one, and {len(rows) - left} are near-duplicates of such "
                "rows or of one another",
                where=f"contaminants.{request.dataset}.held_out",
                allowed=f"0 to {left}",
                hint="Request fewer rows, or provide more data.",
            )
        drawn = _held_out_rows(request, one.rows, request.held_out, seed, _FINAL_DRAW)
        held_out.append([replace(row, side="nonmember", split="tune") for row in drawn])
    return held_out


def _held_out_rows(
    request: PoolRequest, rows: Sequence[Example], wanted: int, seed: int, number: int
) -> list[Example]:
    """Return `wanted` of the rows in random order, each with the same probability."""
    if not wanted:
        return []
    stream = keyed.Stream.HELD_OUT
    strata = keyed_strata(rows, stream=stream, seed=seed, number=number)
    if not request.stratify:
        groups = sorted((group for one in strata for group in one.groups), key=lambda one: one.word)
        strata = [Stratum("", tuple(groups))]
    random = dataset_generator(request.dataset, stream=stream, seed=seed, number=number)
    drawn = random_rows(strata, wanted, random)
    return [drawn[place] for place in random.permutation(len(drawn)).tolist()]


def _distinct(
    candidates: Sequence[Sequence[Example]],
    scored: Sequence[Example],
    threshold: float | None,
    seed: int,
) -> list[list[Example]]:
    """Drop candidates that are similar to a scored row, or to a candidate that stays."""
    rows = [row for part in candidates for row in part]
    # Scored rows stay, and candidates of one group may be alike: they go together.
    every = [*scored, *rows]
    similar: Mapping[int, Mapping[int, float]] = {}
    if threshold is not None and rows:
        similar = _alike(
            every,
            threshold,
            lambda one, other: (one.dataset, one.group) != (other.dataset, other.group),
        )
    names = [f"{row.dataset}\n{row.example_id}" for row in rows]
    keys = keyed.words(seed, keyed.Stream.HELD_OUT, keyed.item_keys(names), 2).tolist()
    kept = set(range(len(scored)))
    texts: set[str] = set()
    for _, place in sorted((key, place) for place, key in enumerate(keys, start=len(scored))):
        name = every[place].example_id
        if name not in texts and not similar.get(place, {}).keys() & kept:
            kept.add(place)
            texts.add(name)
    places = iter(range(len(scored), len(every)))
    return [[row for row in part if next(places) in kept] for part in candidates]


_GRAM = 3
_BLOCK = 512


def word_grams(text: str) -> set[int]:
    """Return the hashed word 3-grams of a text; its single words when it has fewer than 3."""
    words = words_of(text)
    stops = run_stops(words, _GRAM) or range(1, len(words) + 1)
    return {
        xxhash.xxh64_intdigest(" ".join(words[start:stop]).encode())
        for start, stop in enumerate(stops)
    }


def near_duplicate_pairs(texts: Sequence[str], *, threshold: float) -> list[tuple[int, int, float]]:
    """Return first index, second (larger) index and similarity of all pairs with similarity >=
    threshold, sorted.
    """
    grams = [word_grams(text) for text in texts]
    sizes = np.array([len(item) for item in grams], dtype=np.int64)
    columns: dict[int, int] = {}
    indices = [columns.setdefault(gram, len(columns)) for item in grams for gram in item]
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    matrix = csr_array(
        (np.ones(len(indices), dtype=np.int32), np.array(indices, dtype=np.int64), pointers),
        shape=(len(texts), max(len(columns), 1)),
    )
    pairs: list[tuple[int, int, float]] = []
    for start in range(0, len(texts), _BLOCK):
        common = (matrix[start : start + _BLOCK] @ matrix.T).tocoo()
        first, second = common.row + start, common.col
        similarity = common.data / (sizes[first] + sizes[second] - common.data)
        keep = (first < second) & (similarity >= threshold)
        pairs.extend(
            (int(a), int(b), float(value))
            for a, b, value in zip(first[keep], second[keep], similarity[keep], strict=True)
        )
    return sorted(pairs)
