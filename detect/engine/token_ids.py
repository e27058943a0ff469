"""Rows that are exact token ids, as texts: `100257 12 44 99`, or `100257 12 | 44 99`.

The text of such a row is its ids, so that they enter every identity that contains the text, and
`blind` reads them as words. Only the ids after a bar are scored; without one, all but the first,
which has no history.
"""

from collections.abc import Sequence
from typing import NamedTuple

_BAR = "|"


class TokenIds(NamedTuple):
    """The ids of a row."""

    ids: list[int]
    start: int
    """Position of the first id to score; 0 and 1 are alike."""


def ids_text(ids: Sequence[int], start: int = 0) -> str:
    """Return ids as a text."""
    words = [str(number) for number in ids]
    if start > 1:
        words.insert(start, _BAR)
    return " ".join(words)


def parse_ids(text: str) -> TokenIds:
    """Return the ids of a text of `ids_text`."""
    words = text.split()
    start = words.index(_BAR) if _BAR in words else 0
    return TokenIds([int(word) for word in words if word != _BAR], start)
