"""Which rendition each copy carries.

Assigned by example: the members of each dataset are ranked by a keyed hash, and the ranks are
shared out by weight from a drawn place on, so each member has each variant with the probability of
its weight, and counts are within one of their shares. As with levels, a new row of the same dataset
can change another's variant; other datasets change nothing, nor does the split. Assigned by copy:
one keyed draw per copy. If a variant has several versions, an example's copies take turns.
Cost: about a second for a million copies.
"""

from collections.abc import Sequence

import numpy as np

from inject import keyed
from inject.examples.example import Example
from inject.keyed import F64, I64
from inject.variants.rendition import Rendition
from inject.variants.settings import Variants

_BELOW_ONE = float(np.nextafter(1.0, 0.0))


def choose_renditions(
    renditions: Sequence[Rendition],
    variants: Variants,
    members: Sequence[Example],
    member: I64,
    copy: I64,
    *,
    seed: int,
) -> I64:
    """Return the index of each copy's rendition, shape [number of copies].

    Args:
        renditions: of all members, at least one of each variant of each.
        variants: the variants and how they are assigned.
        members: the members.
        member: index of each copy's member, shape [number of copies].
        copy: which copy of its member it is, shape [number of copies].
        seed: the arm's seed.
    """
    keys = keyed.item_keys([example.example_id for example in members])
    weights = np.cumsum([variant.weight for variant in variants.of])
    edges = weights / weights[-1]
    if variants.assign_by == "examples":
        kind = _variant_of_each_member(members, keys, edges, seed)[member]
    else:
        uniform = keyed.unit(keyed.words(seed, keyed.Stream.VARIANT, keys[member], copy))
        kind = np.searchsorted(edges, uniform, side="right")
    order, first, count = _table(renditions, members, len(variants.of))
    turn = keyed.words(seed, keyed.Stream.VERSION, keys)[member] + copy.astype(np.uint64)
    versions = count[member, kind].astype(np.uint64)
    return order[first[member, kind] + (turn % versions).astype(np.int64)]


def _variant_of_each_member(
    members: Sequence[Example], keys: keyed.U64, edges: F64, seed: int
) -> I64:
    """Return each member's variant: ranks within the dataset, shared out by weight."""
    hashes = keyed.words(seed, keyed.Stream.VARIANT, keys)
    datasets: dict[str, list[int]] = {}
    for index, member in enumerate(members):
        datasets.setdefault(member.dataset, []).append(index)
    kind = np.zeros(len(members), dtype=np.int64)
    for dataset, rows in datasets.items():
        inside = np.array(rows)
        ranked = inside[np.argsort(hashes[inside], kind="stable")]
        uniform = keyed.unit(keyed.words(seed, keyed.Stream.VARIANT, keyed.item_key(dataset)))
        place = (np.arange(len(ranked)) + uniform) / len(ranked)
        kind[ranked] = np.searchsorted(edges, np.minimum(place, _BELOW_ONE), side="right")
    return kind


def _table(
    renditions: Sequence[Rendition], members: Sequence[Example], kinds: int
) -> tuple[I64, I64, I64]:
    """Return renditions sorted by member and kind, and each cell's start and size.

    Returns:
        Order of the renditions, shape [renditions]; first place in it and number of versions,
        each of shape [members, kinds].
    """
    index = {member.example_id: place for place, member in enumerate(members)}
    cells = np.array(
        [index[member.example_id] * kinds + member.kind for member in renditions], dtype=np.int64
    )
    order = np.argsort(cells, kind="stable")
    count = np.bincount(cells, minlength=len(members) * kinds)
    first = np.cumsum(count) - count
    return order, first.reshape(-1, kinds), count.reshape(-1, kinds)
