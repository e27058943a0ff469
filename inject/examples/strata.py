"""Groups of one dataset, stratum by stratum, in keyed random order.

Sides, splits, copy counts and twins are drawn for whole groups in this order, so nothing depends on
the names or order of strata, groups or rows. A group's place depends only on (seed, stream,
dataset, group, number); strata are ordered by their own key.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inject import keyed
from inject.examples.example import Example


class Group(NamedTuple):
    """Rows that go together."""

    word: int
    """Its keyed random number."""
    rows: tuple[Example, ...]
    """In keyed random order."""


class Stratum(NamedTuple):
    """Groups that are drawn from in equal shares."""

    label: str
    """The rows' stratum; several joined by `+` if one group has rows of several."""
    groups: tuple[Group, ...]
    """In keyed random order."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return sum(len(group.rows) for group in self.groups)

    @property
    def largest(self) -> int:
        """Rows of the largest group."""
        return max(len(group.rows) for group in self.groups)


def keyed_strata(
    examples: Sequence[Example], *, stream: keyed.Stream, seed: int, number: int = 0
) -> list[Stratum]:
    """Return the groups of one dataset by stratum.

    Args:
        examples: rows of one dataset.
        stream: the purpose of the order.
        seed: the seed.
        number: which of several orders.
    """
    if not examples:
        return []
    dataset = examples[0].dataset
    groups: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        groups[example.group].append(example)
    label = {
        name: "+".join(sorted({example.stratum for example in rows}))
        for name, rows in groups.items()
    }
    labels = sorted(set(label.values()))
    shared_ids = [
        example.example_id for rows in groups.values() if len(rows) > 1 for example in rows
    ]
    # One call for all: a call costs as much as a thousand words.
    names = [
        *(f"{dataset}\n{name}" for name in groups),
        *(f"{dataset}\n\n{stratum}" for stratum in labels),
        *shared_ids,
    ]
    words = keyed.words(seed, stream, keyed.item_keys(names), number).tolist()
    first, last = len(groups), len(groups) + len(labels)
    group_word = dict(zip(groups, words[:first], strict=True))
    strata = sorted(zip(words[first:last], labels, strict=True))
    row_word = dict(zip(shared_ids, words[last:], strict=True))
    groups_by_label: dict[str, list[str]] = defaultdict(list)
    for name in sorted(groups, key=lambda group: (group_word[group], group)):
        groups[name].sort(
            key=lambda example: (row_word.get(example.example_id, 0), example.example_id)
        )
        groups_by_label[label[name]].append(name)
    return [
        Stratum(
            stratum,
            tuple(
                Group(group_word[name], tuple(groups[name])) for name in groups_by_label[stratum]
            ),
        )
        for _, stratum in strata
    ]


def mixed_groups(strata: Sequence[Stratum]) -> list[Group]:
    """Return the groups of several strata in the order of the groups' own keys."""
    groups = [group for stratum in strata for group in stratum.groups]
    return sorted(groups, key=lambda group: group.word)


def dataset_generator(
    dataset: str, *, stream: keyed.Stream, seed: int, number: int = 0
) -> np.random.Generator:
    """Return the generator for decisions on a dataset as a whole."""
    return keyed.generator(seed, stream, keyed.item_key(f"{dataset}\n{number}"))
