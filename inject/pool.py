"""Who is a member: sides and splits, drawn at random from one pool of one dataset.

Groups (rows that share a passage) are walked in keyed random order, stratum by stratum, and
each whole group goes to the side that is furthest from its quota; the rule looks at sizes
and random keys only, never at content, so the sides are exchangeable. Where a group is
larger than what a side still needs, the rest of the group stays out of both sides. Near-
duplicates across groups are found first and all but one of them dropped, so none can stand
on both sides. The draw depends on (seed, dataset, group): other datasets move nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inject import keyed
from inject.errors import InputError
from inject.example import Example, Side, Split
from inject.near import near_pairs

# Only this many times the rows asked for are looked at: a pool of 10,000 rows from which
# 400 are drawn needs no 10**8 comparisons. The cut is in keyed random order.
_CANDIDATES = 4


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """The examples of one dataset with side and split, and what was left out."""

    examples: tuple[Example, ...]
    """Members first, each side in keyed order."""
    near_duplicates: tuple[tuple[str, str, float], ...]
    """(dropped example_id, its kept twin, similarity)."""
    considered: int
    """Rows looked at, before near-duplicates were dropped."""


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
    """Draw the two sides, and the tune and test split of each.

    Args:
        examples: rows of one dataset, texts distinct.
        members: rows wanted on the member side.
        nonmembers: rows wanted on the non-member side.
        tune_share: share of each side's rows whose groups go to the `tune` split.
        stratify: draw both sides in equal shares from each stratum.
        near_duplicate: similarity from which rows of different groups count as one.
        seed: the experiment's seed.

    Raises:
        InputError: when the rows do not suffice, saying how many there are and why.
    """
    dataset = examples[0].dataset if examples else "?"
    wanted = members + nonmembers
    groups = _keyed_groups(examples, dataset, seed)
    candidates: list[list[Example]] = []
    considered = 0
    for group in groups:
        if considered >= _CANDIDATES * wanted:
            break
        candidates.append(group)
        considered += len(group)
    candidates, dropped = _without_near_duplicates(candidates, near_duplicate)

    quotas: dict[Side, int] = {"member": members, "nonmember": nonmembers}
    sides = _assign(candidates, quotas, stratify)
    for side, quota in quotas.items():
        found = sum(len(group) for group in sides[side])
        if found < quota:
            raise InputError(
                f"{members} members and {nonmembers} non-members asked for, but only "
                f"{sum(len(group) for group in candidates)} usable rows in {len(candidates)} "
                f"groups are there ({len(examples)} rows given, {len(dropped)} near-duplicates "
                "dropped; a group that shares a passage stays on one side)",
                where=f"contaminants.{dataset}",
                hint="Ask for fewer rows, give more data, or raise pool.near_duplicate.",
            )
    dealt = [
        replace(row, side=side, split=split)
        for side in quotas
        for row, split in _split(sides[side], dataset, tune_share, seed)
    ]
    return Dealt(examples=tuple(dealt), near_duplicates=tuple(dropped), considered=considered)


def _keyed_groups(examples: Sequence[Example], dataset: str, seed: int) -> list[list[Example]]:
    """Group the rows, sort groups by their keyed hash, rows inside by their id."""
    by_group: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_group[example.group].append(example)
    names = sorted(by_group)
    hashes = _hashes(names, dataset, keyed.Stream.SIDE, seed)
    order = sorted(range(len(names)), key=lambda index: (int(hashes[index]), names[index]))
    return [sorted(by_group[names[index]], key=lambda row: row.example_id) for index in order]


def _hashes(names: list[str], dataset: str, stream: keyed.Stream, seed: int) -> keyed.U64:
    keys = keyed.item_keys([f"{dataset}\n{name}" for name in names])
    return keyed.words(seed, stream, keys)


def _without_near_duplicates(
    groups: list[list[Example]], threshold: float | None
) -> tuple[list[list[Example]], list[tuple[str, str, float]]]:
    """Drop the later row of every similar pair of rows from different groups."""
    rows = [(number, row) for number, group in enumerate(groups) for row in group]
    if threshold is None:
        return groups, []
    gone: set[int] = set()
    dropped = []
    for pair in near_pairs([row.text for _, row in rows], threshold=threshold):
        first_group, first = rows[pair.first]
        second_group, second = rows[pair.second]
        if first_group != second_group and not {pair.first, pair.second} & gone:
            gone.add(pair.second)
            dropped.append((second.example_id, first.example_id, pair.similarity))
    kept: list[list[Example]] = [[] for _ in groups]
    for index, (number, row) in enumerate(rows):
        if index not in gone:
            kept[number].append(row)
    return [group for group in kept if group], dropped


def _assign(
    groups: list[list[Example]], quotas: dict[Side, int], stratify: bool
) -> dict[Side, list[list[Example]]]:
    """Walk the groups in order and give each to the side furthest from its quota."""
    strata: dict[str, list[list[Example]]] = defaultdict(list)
    for group in groups:
        label = "+".join(sorted({row.stratum for row in group})) if stratify else ""
        strata[label].append(group)
    labels = sorted(strata)
    sizes = [sum(len(group) for group in strata[label]) for label in labels]
    shares = {side: _shares(quota, sizes) for side, quota in quotas.items()}

    sides: dict[Side, list[list[Example]]] = {"member": [], "nonmember": []}
    leftover: list[list[Example]] = []
    for position, label in enumerate(labels):
        left = {side: shares[side][position] for side in quotas}
        leftover += _fill(strata[label], left, sides, quotas)
    missing = {
        side: quota - sum(len(group) for group in sides[side]) for side, quota in quotas.items()
    }
    _fill(leftover, missing, sides, quotas)
    return sides


def _fill(
    groups: list[list[Example]],
    left: dict[Side, int],
    sides: dict[Side, list[list[Example]]],
    quotas: dict[Side, int],
) -> list[list[Example]]:
    """Hand out groups until `left` is used up; return the groups that nobody needed."""
    unused = []
    for group in groups:
        side = max(left, key=lambda name: (left[name] / quotas[name], name))
        if left[side] <= 0:
            unused.append(group)
            continue
        taken = group[: left[side]]
        sides[side].append(taken)
        left[side] -= len(taken)
    return unused


def _shares(quota: int, sizes: list[int]) -> list[int]:
    """Split a quota in proportion to sizes, by largest remainders."""
    total = sum(sizes)
    if not total:
        return [0 for _ in sizes]
    exact = [quota * size / total for size in sizes]
    shares = [int(value) for value in exact]
    by_remainder = sorted(range(len(sizes)), key=lambda i: (shares[i] - exact[i], i))
    for index in by_remainder[: quota - sum(shares)]:
        shares[index] += 1
    return shares


def _split(
    groups: list[list[Example]], dataset: str, tune_share: float, seed: int
) -> list[tuple[Example, Split]]:
    """Put whole groups into `tune`, stratum by stratum, until it has its share of the rows."""
    names = [group[0].group for group in groups]
    hashes = _hashes(names, dataset, keyed.Stream.SPLIT, seed)
    strata: dict[str, list[int]] = defaultdict(list)
    for index in np.argsort(hashes, kind="stable"):
        strata[groups[index][0].stratum].append(int(index))
    tune: set[int] = set()
    owed = 0.0
    for stratum in sorted(strata):
        owed += tune_share * sum(len(groups[index]) for index in strata[stratum])
        for index in strata[stratum]:
            if owed < len(groups[index]) / 2:
                break
            tune.add(index)
            owed -= len(groups[index])
    return [
        (row, "tune" if index in tune else "test")
        for index, group in enumerate(groups)
        for row in group
    ]
