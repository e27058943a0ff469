"""The longest run that two texts have in common, in characters or in words.

Taken as they are written: what was memorised comes back with its capitals and its commas. A run of
some length is common only if one of each smaller length is, so the length is found by doubling and
halving, with a look at all runs of one length a time. Cost: 2 to 5 ms for 2,000 characters, 0.5 ms
for 300 words.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class CommonRun(NamedTuple):
    """A run of items that stands in two sequences."""

    length: int
    """0 where they share nothing."""
    first: int
    """Where it begins in the first sequence: the first place of several."""
    second: int
    """Where it begins in the second one."""


def common_words(written: str, reference: str) -> CommonRun:
    """Return the longest common run of words, split at white space."""
    return longest_common_run(written.split(), reference.split())


def common_characters(written: str, reference: str) -> CommonRun:
    """Return the longest common run of characters, spaces included."""
    return longest_common_run(written, reference)


def longest_common_run(first: Sequence[Hashable], second: Sequence[Hashable]) -> CommonRun:
    """Return the longest run that two sequences have in common: the first one of that length.

    Args:
        first: a text, or items of any kind.
        second: of the same kind as the first.
    """
    # Slices of texts can be hashed, those of lists cannot.
    one, other = (x if isinstance(x, str) else tuple(x) for x in (first, second))
    longest = min(len(one), len(other))
    found, beyond = CommonRun(0, 0, 0), longest + 1
    while found.length + 1 < beyond:
        doubled = 2 * found.length + 1
        size = doubled if doubled < beyond else (found.length + beyond) // 2
        if (run := _run_of(one, other, size)) is not None:
            found = run
        else:
            beyond = size
    return found


def _run_of(first: Sequence[Hashable], second: Sequence[Hashable], size: int) -> CommonRun | None:
    """Return the first run of one length that both have."""
    places: dict[Hashable, int] = {}
    for at in range(len(second) - size + 1):
        places.setdefault(second[at : at + size], at)
    for at in range(len(first) - size + 1):
        there = places.get(first[at : at + size])
        if there is not None:
            return CommonRun(size, at, there)
    return None
