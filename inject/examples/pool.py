"""The rows that sides are drawn from, without near-duplicates, and the held-out rows.

Of near-duplicates only one row stays, inside a dataset across its groups and between datasets, so
no text can be on both sides. Which row stays is decided by keys, never by content. Another dataset
can change which rows of a dataset remain, if the two share near-duplicates, and moves nothing else.
`inject.examples.membership` draws the two sides from the remaining rows.

Held-out rows are neither trained on nor scored: detectors take shots, calibration and populations
from them. They are drawn after both sides, from rows that share no group or text with a scored row
of any dataset and are not near-duplicates of one: requesting them moves no member and no
non-member. Of near-duplicates among them one stays, decided by keys. Each remaining row has the
same probability, the share of each stratum rounded at random, so non-members and held-out rows
differ only by the exclusion of whole groups: if groups are large and few rows are spare, held-out
rows come from smaller groups.

Two texts are near-duplicates when the Jaccard similarity of their sets of word 3-grams (single
words for shorter texts) reaches a threshold; `inject.words` defines a word. All pairs are
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
from inject.examples.example import DroppedRow, DropReason, Example
from inject.examples.random_rounding import round_table
from inject.examples.strata import Stratum, dataset_generator, keyed_strata, mixed_groups
from inject.words import run_stops, words_of

# Only this many times the requested rows are compared, unless too few of them remain: a pool of
# 10,000 rows from which 400 are drawn needs no 10**8 comparisons.
_CANDIDATES = 4
_CANDIDATE_DRAW, _FINAL_DRAW = 0, 1


@dataclass(frozen=True, kw_only=True)
class PoolRequest:
    """The rows of one dataset, and the numbers to draw for each purpose."""

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
    losses: tuple[DroppedRow, ...] = ()
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
    return _enough_rows(
        [request.members + request.nonmembers for request in requests],
        [len(request.examples) for request in requests],
        lambda counts: _compare(requests, counts, near_duplicate, seed),
    )


def _enough_rows(
    n_required: Sequence[int],
    available: Sequence[int],
    look_at: Callable[[Sequence[int]], list[UsableRows]],
) -> list[UsableRows]:
    """Read more rows of each dataset until enough are usable; return the usable ones."""
    counts = [
        min(_CANDIDATES * rows, most) for rows, most in zip(n_required, available, strict=True)
    ]
    while True:
        usable = look_at(counts)
        short = [
            number
            for number, rows_of_dataset in enumerate(usable)
            if len(rows_of_dataset.rows) < n_required[number] and counts[number] < available[number]
        ]
        if not short:
            return usable
        for number in short:
            counts[number] = min(2 * counts[number], available[number])


def _compare(
    requests: Sequence[PoolRequest], counts: Sequence[int], threshold: float, seed: int
) -> list[UsableRows]:
    """Return the usable rows among the first rows of each dataset."""
    pools = [
        _candidates(pool_request, count, seed)
        for pool_request, count in zip(requests, counts, strict=True)
    ]
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


def _candidates(request: PoolRequest, n_rows: int, seed: int) -> list[Example]:
    """Return `n_rows` random rows to be compared, each row with the same probability."""
    strata = keyed_strata(request.examples, stream=keyed.Stream.NEAR_DUPLICATE, seed=seed)
    random = dataset_generator(request.dataset, stream=keyed.Stream.NEAR_DUPLICATE, seed=seed)
    return random_rows(strata, n_rows, random)


def random_rows(
    strata: Sequence[Stratum], n_rows: int, random: np.random.Generator
) -> list[Example]:
    """Return `n_rows` rows, the share of each stratum rounded at random, neighbours in its order.

    Each row has the same probability: its stratum's rows are taken from anywhere on, around.
    """
    total = sum(stratum.size for stratum in strata)
    table = [[n_rows * stratum.size, (total - n_rows) * stratum.size] for stratum in strata]
    chosen: list[Example] = []
    for stratum, (count, _) in zip(strata, round_table(table, max(total, 1), random), strict=True):
        rows = [row for group in stratum.groups for row in group.rows]
        start = int(random.integers(len(rows)))
        chosen += [rows[(start + place) % len(rows)] for place in range(count)]
    return chosen


def _without_near_duplicates(
    rows: list[Example], threshold: float
) -> tuple[list[Example], list[DroppedRow]]:
    """Drop the later row of every similar pair of rows from different groups."""
    dropped_rows: set[int] = set()
    dropped = []
    texts = [row.text for row in rows]
    for earlier, later, similarity in near_duplicate_pairs(texts, threshold=threshold):
        first, second = rows[earlier], rows[later]
        if first.group != second.group and not {earlier, later} & dropped_rows:
            dropped_rows.add(later)
            dropped.append(_loss(second, DropReason.NEAR_DUPLICATE, first, similarity))
    return [row for place, row in enumerate(rows) if place not in dropped_rows], dropped


def _without_cross_dataset_duplicates(
    pools: list[list[Example]], threshold: float, seed: int
) -> tuple[list[list[Example]], list[list[DroppedRow]]]:
    """Drop rows until none is similar to one of another dataset; by key, which of them."""
    rows = [row for pool in pools for row in pool]
    similar: Mapping[int, Mapping[int, float]] = {}
    if len(pools) > 1:
        similar = _similar_rows(rows, threshold, lambda row, other: row.dataset != other.dataset)
    names = [f"{rows[place].dataset}\n{rows[place].example_id}" for place in similar]
    words = keyed.words(seed, keyed.Stream.NEAR_DUPLICATE, keyed.item_keys(names)).tolist()
    kept_places: set[int] = set()
    dropped: dict[int, DroppedRow] = {}
    for _, _, place in sorted(zip(words, names, similar, strict=True)):
        twin = next((other for other in similar[place] if other in kept_places), None)
        if twin is None:
            kept_places.add(place)
            continue
        loss, alike = DropReason.NEAR_DUPLICATE_ACROSS, similar[place][twin]
        dropped[place] = _loss(rows[place], loss, rows[twin], alike)
    places = iter(range(len(rows)))
    left = [[row for row in pool if next(places) not in dropped] for pool in pools]
    datasets = [pool[0].dataset if pool else "" for pool in pools]
    across = [
        [loss for loss in dropped.values() if loss.dataset == dataset] for dataset in datasets
    ]
    return left, across


def _similar_rows(
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


def _loss(dropped: Example, loss: DropReason, twin: Example, similarity: float) -> DroppedRow:
    duplicate_of = f"{twin.dataset} {twin.source_id}"
    return DroppedRow(dropped.dataset, dropped.source_id, loss, duplicate_of, similarity)


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
        InputError: too few rows of a dataset, with their number.
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
            _held_out_rows(*arguments, seed, _CANDIDATE_DRAW)
            for arguments in zip(requests, free, counts, strict=True)
        ]
        distinct = _drop_similar(candidates, scored, near_duplicate, seed)
        return [
            UsableRows(request=request, rows=rows, considered=count)
            for request, rows, count in zip(requests, distinct, counts, strict=True)
        ]

    usable = _enough_rows([request.held_out for request in requests], [*map(len, free)], look_at)
    held_out = []
    for request, rows, rows_of_dataset in zip(requests, free, usable, strict=True):
        left, n_usable = len(rows_of_dataset.rows), len(request.examples) + len(request.further)
        if left < request.held_out:
            raise InputError(
                f"{request.held_out} held-out rows requested, but only {left} rows can be held "
                f"out: of {n_usable} usable rows {n_usable - len(rows)} are members or non-members "
                f"or share a passage with one, and {len(rows) - left} are near-duplicates of such "
                "rows or of one another",
                where=f"contaminants.{request.dataset}.held_out",
                allowed=f"0 to {left}",
                hint="Request fewer rows, or provide more data.",
            )
        chosen = _held_out_rows(request, rows_of_dataset.rows, request.held_out, seed, _FINAL_DRAW)
        held_out.append([replace(row, side="nonmember", split="tune") for row in chosen])
    return held_out


def _held_out_rows(
    request: PoolRequest, rows: Sequence[Example], n_rows: int, seed: int, number: int
) -> list[Example]:
    """Return `n_rows` of the rows in random order, each with the same probability."""
    if not n_rows:
        return []
    stream = keyed.Stream.HELD_OUT
    strata = keyed_strata(rows, stream=stream, seed=seed, number=number)
    if not request.stratify:
        strata = [Stratum("", tuple(mixed_groups(strata)))]
    random = dataset_generator(request.dataset, stream=stream, seed=seed, number=number)
    chosen = random_rows(strata, n_rows, random)
    return [chosen[place] for place in random.permutation(len(chosen)).tolist()]


def _drop_similar(
    candidates: Sequence[Sequence[Example]],
    scored: Sequence[Example],
    threshold: float | None,
    seed: int,
) -> list[list[Example]]:
    """Drop candidates that are similar to a scored row, or to a candidate that stays."""
    rows = [row for part in candidates for row in part]
    # Scored rows stay, and candidates of one group may be alike: they go together.
    compared = [*scored, *rows]
    similar: Mapping[int, Mapping[int, float]] = {}
    if threshold is not None and rows:
        similar = _similar_rows(
            compared,
            threshold,
            lambda row, other: (row.dataset, row.group) != (other.dataset, other.group),
        )
    names = [f"{row.dataset}\n{row.example_id}" for row in rows]
    keys = keyed.words(seed, keyed.Stream.HELD_OUT, keyed.item_keys(names), 2).tolist()
    kept_places = set(range(len(scored)))
    texts: set[str] = set()
    for _, place in sorted((key, place) for place, key in enumerate(keys, start=len(scored))):
        name = compared[place].example_id
        if name not in texts and not similar.get(place, {}).keys() & kept_places:
            kept_places.add(place)
            texts.add(name)
    places = iter(range(len(scored), len(compared)))
    return [[row for row in part if next(places) in kept_places] for part in candidates]


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
