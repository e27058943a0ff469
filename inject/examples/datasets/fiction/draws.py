"""The random numbers of one row, drawn once and then consumed in order.

A row is a pure function of (seed, index): its 64-bit words come from the keyed generator of that
index alone. One call for 160 words costs about 10 microseconds; a call for each decision would
cost a hundred times as much. A row that needs more words draws on from the same generator.
"""

from collections.abc import Sequence
from typing import TypeVar

from inject.keyed import Stream, generator

T = TypeVar("T")

_WORDS = 160


class Draws:
    """Uniform decisions for row `index` of `seed`, in a fixed order."""

    def __init__(self, seed: int, index: int) -> None:
        self._generator = generator(seed, Stream.FICTION, index)
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """Return an integer, uniform on 0 <= x < bound up to bound / 2**64."""
        if not self._words:
            self._words = self._generator.bit_generator.random_raw(_WORDS).tolist()
        return (self._words.pop() * bound) >> 64

    def between(self, low: int, high: int) -> int:
        """Return an integer, uniform on low <= x <= high."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items, each as likely as another."""
        # As `below`, written out: a row makes about a hundred of these.
        words = self._words
        return items[(words.pop() * len(items)) >> 64 if words else self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items in random order (the first steps of Fisher-Yates)."""
        pool = list(items)
        for place in range(count):
            other = place + self.below(len(pool) - place)
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:count]
