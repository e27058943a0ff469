"""Invented values: names from syllables, numbers, titles and goods from lists.

The lists are in `names.txt`, which lies beside this module as the sentences about each kind of
subject do: `DATA_FILES` names them, so that their content is part of the digest of whatever uses
them (`inject.source_digest`).

Each function draws one value, independent of everything else. Room: 2.9e10 people, 1e5 towns and
rivers, 5e5 titles, so that among 10**6 rows about 17 pairs share the name of their person, and
those pairs differ in everything else.

The random numbers of a row are drawn once and then consumed in order (`Draws`): one call for 160
words costs about 10 microseconds; a call for each decision would cost a hundred times as much. A
row that needs more words draws on from the same generator.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TypeVar

from inject.keyed import Stream, generator

DATA_FILES = ("gatherings.txt", "names.txt", "people.txt", "towns.txt", "works.txt")


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


def data_text(name: str) -> str:
    """Return the content of one of the data files."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _list(name: str) -> tuple[str, ...]:
    """Return a list of words of `names.txt`.

    Blocks are divided by empty lines. The first line of a block is the name of the list; its items
    follow, divided by commas where there are any, else by blanks.
    """
    for block in data_text("names.txt").strip().split("\n\n"):
        head, _, body = block.partition("\n")
        if head == name:
            items = body.split(",") if "," in body else body.split()
            return tuple(" ".join(item.split()) for item in items)
    raise KeyError(name)


def _stem(draws: Draws, middles: str) -> str:
    return "".join(draws.pick(_list(part)) for part in ("onsets", "vowels", middles))


def person(draws: Draws) -> str:
    """Return a first and a last name: `Tolmira Kestovic`."""
    first = _stem(draws, "middles") + draws.pick(_list("first_endings"))
    return f"{first} {surname(draws)}"


def surname(draws: Draws) -> str:
    """Return a last name."""
    return _stem(draws, "middles") + draws.pick(_list("last_endings"))


def town(draws: Draws) -> str:
    """Return the name of a town: `Kenderholm`."""
    return _stem(draws, "town_middles") + draws.pick(_list("town_endings"))


def country(draws: Draws) -> str:
    """Return the name of a country: `Tolmaria`."""
    return _stem(draws, "middles") + draws.pick(_list("country_endings"))


def river(draws: Draws) -> str:
    """Return the name of a river, without article: `Vornane`."""
    return _stem(draws, "middles") + draws.pick(_list("river_endings"))


def school(draws: Draws) -> str:
    """Return the name of a place of learning, without article."""
    return f"{surname(draws)} {draws.pick(('Academy', 'College', 'Institute', 'Seminary'))}"


def prize(draws: Draws) -> str:
    """Return the name of an award, without article."""
    return f"{surname(draws)} {draws.pick(('Prize', 'Medal', 'Cup', 'Ribbon', 'Laurel'))}"


def sign(draws: Draws) -> str:
    """Return what ships, taverns and newspapers are called, without article: `Amber Heron`."""
    return f"{draws.pick(_list('adjectives'))} {draws.pick(_list('creatures'))}"


def title(draws: Draws) -> str:
    """Return the title of a book, a play, a picture or a piece of music."""
    first, second = draws.sample(_list("nouns"), 2)
    adjective = draws.pick(_list("adjectives"))
    return draws.pick(
        (
            f"The {adjective} {first}",
            f"The {first} and the {second}",
            f"The {adjective} {first} of {town(draws)}",
            f"{adjective} {first}, {draws.pick(_list('adjectives'))} {second}",
            f"No {second} for the {adjective} {first}",
            f"Beyond the {adjective} {first}",
        )
    )


def trade(draws: Draws) -> str:
    """Return a profession, without article."""
    return draws.pick(_list("trades"))


def genre(draws: Draws) -> str:
    """Return a kind of story that can be read or performed, without article."""
    return draws.pick(_list("genres"))


def goods(draws: Draws) -> str:
    """Return something that is made and sold, a plural or a substance."""
    return draws.pick(_list("goods"))


def year(draws: Draws) -> str:
    """Return a year from 1420 to 1989."""
    return str(draws.between(1420, 1989))


def age(draws: Draws) -> str:
    """Return an age from 21 to 79."""
    return str(draws.between(21, 79))


def dozens(draws: Draws) -> str:
    """Return a count from 12 to 99."""
    return str(draws.between(12, 99))


def hundreds(draws: Draws) -> str:
    """Return a count from 100 to 999."""
    return str(draws.between(100, 999))


def thousands(draws: Draws) -> str:
    """Return a count from 1,000 to 99,999, with its comma."""
    return f"{draws.between(1000, 99_999):,}"


def day(draws: Draws) -> str:
    """Return a day of the year: `17 March`."""
    return f"{draws.between(1, 28)} {draws.pick(_list('months'))}"


def with_article(noun: str) -> str:
    """Return `noun` after `a` or `an`, for nouns that are spoken as they are spelled."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"
