"""Members and non-members of one dataset alone, as several tests draw them."""

from collections.abc import Sequence

from inject.examples.example import Example
from inject.examples.membership import DatasetMembership, split_members
from inject.examples.pool import PoolRequest, usable_rows


def drawn_membership(
    examples: Sequence[Example],
    members: int,
    nonmembers: int,
    *,
    seed: int = 0,
    tune_share: float = 0.25,
    stratify: bool = True,
    near_duplicate: float | None = 0.7,
) -> DatasetMembership:
    """Return both sides of one dataset, near-duplicates dropped."""
    request = PoolRequest(
        examples=examples, members=members, nonmembers=nonmembers, stratify=stratify
    )
    [usable] = usable_rows([request], near_duplicate=near_duplicate, seed=seed)
    return split_members(usable, tune_share=tune_share, seed=seed)
