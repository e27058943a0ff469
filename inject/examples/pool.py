"""CopyAssignment the rows of all datasets: near-duplicates out, then sides, then splits.

Near-duplicates are found first and all but one of them dropped, inside a dataset across its groups
and between datasets, so none can stand on both sides. Then members and non-members are drawn from
each dataset's usable rows, and each side is split (see `inject.examples.membership`); counts are
exact. Only keys and numbers of rows are looked at, never content, so the sides are exchangeable. A
dataset's draw depends on (seed, dataset) and on its own usable rows; another dataset can change
which rows those are, where the two share near-duplicates, and moves nothing else.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from inject import keyed
from inject.errors import InputError
from inject.examples.example import Example
from inject.examples.membership import Drawn, draw_sides, draw_splits
from inject.examples.near_duplicates import NearPair, near_pairs
from inject.examples.random_rounding import round_table
from inject.examples.strata import keyed_strata, random_of

# Only this many times the rows asked for are compared, unless too few of them are left: a pool of
# 10,000 rows from which 400 are drawn needs no 10**8 comparisons.
_CANDIDATES = 4


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is wanted of one dataset."""

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


class NearAcross(NamedTuple):
    """A row that was dropped for one of another dataset."""

    dropped: str
    """Its example_id."""
    kept: str
    """The example_id of the other."""
    dataset: str
    """The dataset of the other."""
    similarity: float


@dataclass(frozen=True, kw_only=True)
class Usable:
    """The rows of one dataset that sides can be drawn from."""

    asked: Asked
    rows: Sequence[Example]
    considered: int
    """Rows looked at, before near-duplicates were dropped."""
    near_duplicates: tuple[tuple[str, str, float], ...]
    """(dropped example_id, its kept twin, similarity)."""
    near_across: tuple[NearAcross, ...]
    """Rows dropped for near-duplicates in other datasets."""


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """The examples of one dataset with side and split, and what was left out."""

    examples: tuple[Example, ...]
    """Members first, each side in keyed order."""
    usable: Usable
    drawn: Drawn

    @property
    def near_duplicates(self) -> tuple[tuple[str, str, float], ...]:
        """(dropped example_id, its kept twin, similarity), inside the dataset."""
        return self.usable.near_duplicates


def usable_rows(asked: Sequence[Asked], *, near_duplicate: float | None, seed: int) -> list[Usable]:
    """Return the rows of every dataset less near-duplicates, inside each and between them.

    Args:
        asked: all datasets.
        near_duplicate: similarity from which rows of different groups or datasets count as one;
            None keeps all.
        seed: the experiment's seed.
    """
    if near_duplicate is None:
        return [
            Usable(
                asked=one,
                rows=one.examples,
                considered=len(one.examples),
                near_duplicates=(),
                near_across=(),
            )
            for one in asked
        ]
    counts = [min(_CANDIDATES * one.wanted, len(one.examples)) for one in asked]
    while True:
        found = _compared(asked, counts, near_duplicate, seed)
        short = [
            number
            for number, one in enumerate(found)
            if len(one.rows) < one.asked.wanted and one.considered < len(one.asked.examples)
        ]
        if not short:
            return found
        for number in short:
            counts[number] = min(2 * counts[number], len(asked[number].examples))


def _compared(
    asked: Sequence[Asked], counts: Sequence[int], threshold: float, seed: int
) -> list[Usable]:
    """Return the rows that are left of so many of each dataset."""
    pools = [_candidates(one, count, seed) for one, count in zip(asked, counts, strict=True)]
    single = [_without_near_duplicates(pool, threshold) for pool in pools]
    left, across = _without_near_across([rows for rows, _ in single], threshold, seed)
    return [
        Usable(
            asked=one,
            rows=left[number],
            considered=len(pools[number]),
            near_duplicates=tuple(single[number][1]),
            near_across=tuple(across[number]),
        )
        for number, one in enumerate(asked)
    ]


def deal_usable(usable: Usable, *, tune_share: float, seed: int) -> Dealt:
    """Draw the two sides of one dataset, and the tune and test split of each.

    Args:
        usable: its rows, and what is wanted.
        tune_share: share of each side's rows whose groups go to the `tune` split.
        seed: the experiment's seed.

    Raises:
        InputError: when the rows do not suffice, saying how many there are and why.
    """
    asked, rows = usable.asked, usable.rows
    drawn = draw_sides(
        rows,
        members=asked.members,
        nonmembers=asked.nonmembers,
        stratify=asked.stratify,
        seed=seed,
    )
    if drawn is None:
        raise InputError(
            f"{asked.members} members and {asked.nonmembers} non-members asked for, but only "
            f"{len(rows)} usable rows in {len({row.group for row in rows})} groups are there "
            f"({len(asked.examples)} rows given, {len(usable.near_duplicates)} near-duplicates "
            f"dropped, and {len(usable.near_across)} near-duplicates of other datasets; a group "
            "that shares a passage stays on one side)",
            where=f"contaminants.{asked.dataset}",
            hint="Ask for fewer rows, give more data, or raise pool.near_duplicate.",
        )
    examples: list[Example] = []
    for side, inside in drawn.sides.items():
        splits = draw_splits(inside, side=side, tune_share=tune_share, seed=seed)
        examples += [replace(row, side=side, split=splits[row.example_id]) for row in inside]
    return Dealt(examples=tuple(examples), usable=usable, drawn=drawn)


def deal(
    examples: Sequence[Example],
    *,
    members: int,
    nonmembers: int,
    tune_share: float,
    stratify: bool,
    near_duplicate: float | None,
    seed: int,
) -> Dealt:
    """Deal one dataset alone; see `usable_rows` and `deal_usable`."""
    asked = Asked(examples=examples, members=members, nonmembers=nonmembers, stratify=stratify)
    [usable] = usable_rows([asked], near_duplicate=near_duplicate, seed=seed)
    return deal_usable(usable, tune_share=tune_share, seed=seed)


def _candidates(asked: Asked, wanted: int, seed: int) -> list[Example]:
    """Return `wanted` random rows to be compared, each row with the same probability."""
    total = len(asked.examples)
    stream = keyed.Stream.NEAR_DUPLICATE
    strata = keyed_strata(asked.examples, stream=stream, seed=seed)
    random = random_of(asked.dataset, stream=stream, seed=seed)
    table = [[wanted * one.size, (total - wanted) * one.size] for one in strata]
    chosen: list[Example] = []
    for stratum, (count, _) in zip(strata, round_table(table, max(total, 1), random), strict=True):
        rows = [row for group in stratum.groups for row in group.rows]
        start = int(random.integers(len(rows)))
        chosen += [rows[(start + place) % len(rows)] for place in range(count)]
    return chosen


def _without_near_duplicates(
    rows: list[Example], threshold: float
) -> tuple[list[Example], list[tuple[str, str, float]]]:
    """Drop the later row of every similar pair of rows from different groups."""
    gone: set[int] = set()
    dropped = []
    for pair in near_pairs([row.text for row in rows], threshold=threshold):
        first, second = rows[pair.first], rows[pair.second]
        if first.group != second.group and not {pair.first, pair.second} & gone:
            gone.add(pair.second)
            dropped.append((second.example_id, first.example_id, pair.similarity))
    return [row for place, row in enumerate(rows) if place not in gone], dropped


def _without_near_across(
    pools: list[list[Example]], threshold: float, seed: int
) -> tuple[list[list[Example]], list[list[NearAcross]]]:
    """Drop rows until none is similar to one of another dataset; by key, which of them."""
    rows = [(number, row) for number, pool in enumerate(pools) for row in pool]
    similar: dict[int, list[tuple[int, float]]] = defaultdict(list)
    found: list[NearPair] = []
    if len(pools) > 1:
        found = near_pairs([row.text for _, row in rows], threshold=threshold)
    for pair in found:
        if rows[pair.first][0] != rows[pair.second][0]:
            similar[pair.first].append((pair.second, pair.similarity))
            similar[pair.second].append((pair.first, pair.similarity))
    names = [f"{rows[place][1].dataset}\n{rows[place][1].example_id}" for place in similar]
    words = keyed.words(seed, keyed.Stream.NEAR_DUPLICATE, keyed.item_keys(names)).tolist()
    gone: set[int] = set()
    kept: set[int] = set()
    across: list[list[NearAcross]] = [[] for _ in pools]
    for _, _, place in sorted(zip(words, names, similar, strict=True)):
        twin = next((pair for pair in similar[place] if pair[0] in kept), None)
        if twin is None:
            kept.add(place)
            continue
        gone.add(place)
        number, other = rows[twin[0]]
        across[rows[place][0]].append(
            NearAcross(rows[place][1].example_id, other.example_id, other.dataset, twin[1])
        )
    left: list[list[Example]] = [[] for _ in pools]
    for place, (number, row) in enumerate(rows):
        if place not in gone:
            left[number].append(row)
    return left, across
