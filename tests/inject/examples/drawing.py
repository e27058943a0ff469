"""Rows, and members and non-members drawn from a single dataset for several tests."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inject.examples.example import Example
from inject.examples.membership import DrawnSides, split_members
from inject.examples.pool import PoolRequest, UsableRows, usable_rows


class Membership(NamedTuple):
    """The examples of one dataset with their sides and splits, and how they were drawn."""

    examples: list[Example]
    drawn: DrawnSides
    usable: UsableRows


def plain_row(name: str, group: str | None = None, **fields: Any) -> Example:
    """Return an example whose id and text are its name; by default a member of `toy`."""
    values = {"dataset": "toy", "source_id": name, "text": name, "side": "member", **fields}
    return Example(example_id=name, group=group or name, **values)


def drawn_membership(
    examples: Sequence[Example],
    members: int,
    nonmembers: int,
    *,
    seed: int = 0,
    tune_share: float = 0.25,
    stratify: bool = True,
    near_duplicate: float | None = 0.7,
) -> Membership:
    """Return both sides of one dataset, near-duplicates dropped."""
    request = PoolRequest(
        examples=examples, members=members, nonmembers=nonmembers, stratify=stratify
    )
    [usable] = usable_rows([request], near_duplicate=near_duplicate, seed=seed)
    return Membership(*split_members(usable, tune_share=tune_share, seed=seed), usable)
