"""The beginning of a text, which a model is given, and the rest, which it is compared with.

A word is what stands between white space. Nothing is changed: beginning and rest, put together,
are the text, or its first tokens where the beginning is counted in tokens.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple

Unit = Literal["share", "words", "tokens"]
_WORD = re.compile(r"\S+")


class Beginning(NamedTuple):
    """How much of a text a model is given."""

    unit: Unit = "share"
    """`share`: floor(words · amount); `words` and `tokens`: so many."""
    amount: Decimal = Decimal("0.5")

    def __str__(self) -> str:
        return f"{self.unit} {self.amount.normalize():f}"


FIRST_HALF = Beginning()


class Division(NamedTuple):
    """A text in two."""

    beginning: str
    rest: str
    """Begins with the white space that stands between the two."""
    rest_tokens: int | None
    """Tokens of the rest, where they were counted."""


def divide(text: str, at: Beginning, ends: Sequence[int] | None) -> Division | str:
    """Return a text in two, or why it cannot be divided.

    Args:
        text: any text.
        at: how much of it is the beginning.
        ends: where each of its tokens ends, in characters; None where the tokenizer is not known.
    """
    if not text.strip():
        return "empty text"
    if at.unit == "tokens":
        return _at_token(text, int(at.amount), ends)
    stops = [word.end() for word in _WORD.finditer(text)]
    count = int(at.amount)
    if at.unit == "share":
        count = math.floor(len(stops) * Fraction(at.amount))
    if not 1 <= count < len(stops):
        return f"{len(stops)} words are too few to divide at {at}"
    stop = stops[count - 1]
    counted = None if ends is None else sum(end > stop for end in ends)
    return Division(text[:stop], text[stop:], counted)


def _at_token(text: str, count: int, ends: Sequence[int] | None) -> Division | str:
    """Divide at a token; the rest is as many tokens (Duarte et al. 2024, section 5.1.1)."""
    if ends is None:
        raise TypeError("a beginning in tokens without the tokens")
    if len(ends) < 2 * count:
        return f"{len(ends)} tokens are fewer than twice {count}"
    stop, last = ends[count - 1], ends[2 * count - 1]
    if not text[:stop].strip() or not text[stop:last].strip():
        return f"{count} tokens hold nothing but white space"
    return Division(text[:stop], text[stop:last], count)
