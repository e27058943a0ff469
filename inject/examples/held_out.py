"""Held-out rows: rows of a dataset that no model sees and that nobody scores.

Detectors take shots, calibration and populations from them. They are drawn after both sides, from
the rows that share no group and no text with a scored row of any dataset and are no near-duplicate
of one: asking for them moves no member and no non-member. Of near-duplicates among them one stays,
decided by keys. Each row that is left has the same chance, the share of each stratum rounded at
random, so non-members and held-out rows differ in nothing but what the exclusion of whole groups
brings: where groups are large and few rows to spare, held-out rows come from smaller groups.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inject import keyed
from inject.errors import InputError
from inject.examples.example import Example
from inject.examples.pool import near_duplicate_pairs, random_rows
from inject.examples.strata import Stratum, dataset_generator, keyed_strata

# As for the two sides: so many times the rows asked for are compared, and more where they do not
# suffice.
_CANDIDATES = 4
_CANDIDATE_DRAW, _FINAL_DRAW = 0, 1


@dataclass(frozen=True, kw_only=True)
class HeldOutRequest:
    """How many rows of one dataset are held out."""

    dataset: str
    rows: Sequence[Example]
    """All rows of the dataset that can be used, those on a side included; texts distinct."""
    wanted: int
    stratify: bool = True
    """Hold out rows in equal shares of each stratum."""


def draw_held_out(
    requests: Sequence[HeldOutRequest],
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
            for row in one.rows
            if (row.dataset, row.group) not in taken and row.example_id not in texts
        ]
        if one.wanted
        else []
        for one in requests
    ]
    counts = [
        min(_CANDIDATES * one.wanted, len(rows)) for one, rows in zip(requests, free, strict=True)
    ]
    while True:
        candidates = [
            _draw(one, rows, count, seed, _CANDIDATE_DRAW)
            for one, rows, count in zip(requests, free, counts, strict=True)
        ]
        usable = _distinct(candidates, scored, near_duplicate, seed)
        short = [
            number
            for number, one in enumerate(requests)
            if len(usable[number]) < one.wanted and counts[number] < len(free[number])
        ]
        if not short:
            break
        for number in short:
            counts[number] = min(2 * counts[number], len(free[number]))
    found = []
    for one, rows, left in zip(requests, free, usable, strict=True):
        if len(left) < one.wanted:
            raise InputError(
                f"{one.wanted} held-out rows asked for, but only {len(left)} rows can be held out: "
                f"of {len(one.rows)} usable rows {len(one.rows) - len(rows)} are members or "
                f"non-members or share a passage with one, and {len(rows) - len(left)} are "
                "near-duplicates of such rows or of one another",
                where=f"contaminants.{one.dataset}.held_out",
                allowed=f"0 to {len(left)}",
                hint="Ask for fewer rows, or give more data.",
            )
        drawn = _draw(one, left, one.wanted, seed, _FINAL_DRAW)
        found.append([replace(row, side="nonmember", split="tune") for row in drawn])
    return found


def _draw(
    request: HeldOutRequest, rows: Sequence[Example], wanted: int, seed: int, number: int
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
    if not rows:
        return [[] for _ in candidates]
    # Scored rows stay, and candidates of one group may be alike: they go together.
    every = [*scored, *rows]
    similar: dict[int, set[int]] = defaultdict(set)
    if threshold is not None:
        for pair in near_duplicate_pairs([row.text for row in every], threshold=threshold):
            similar[pair.first].add(pair.second)
            similar[pair.second].add(pair.first)
    names = [f"{row.dataset}\n{row.example_id}" for row in rows]
    keys = keyed.words(seed, keyed.Stream.HELD_OUT, keyed.item_keys(names), 2).tolist()
    kept = set(range(len(scored)))
    texts: set[str] = set()
    for _, place in sorted((key, place) for place, key in enumerate(keys, start=len(scored))):
        row = every[place]
        group = (row.dataset, row.group)
        against = similar.get(place, set()) & kept
        if row.example_id in texts or any(
            (every[other].dataset, every[other].group) != group for other in against
        ):
            continue
        kept.add(place)
        texts.add(row.example_id)
    found: list[list[Example]] = []
    first = len(scored)
    for part in candidates:
        found.append([row for place, row in enumerate(part, start=first) if place in kept])
        first += len(part)
    return found
