"""Invented values: names from syllables, numbers, titles and goods from lists.

The lists are in `names.txt`.

Each function draws one value, independent of everything else. Room: 2.9e10 people, 1e5 towns and
rivers, 5e5 titles, so that among 10**6 rows about 17 pairs share the name of their person, and
those pairs differ in everything else.
"""

from inject.examples.datasets.fiction.data import data_text, read_lists
from inject.examples.datasets.fiction.draws import Draws

_LISTS = read_lists(data_text("names.txt"))

_ONSETS = _LISTS["onsets"]
_VOWELS = _LISTS["vowels"]
_MIDDLES = _LISTS["middles"]
_FIRST_ENDINGS = _LISTS["first_endings"]
_LAST_ENDINGS = _LISTS["last_endings"]
_TOWN_MIDDLES = _LISTS["town_middles"]
_TOWN_ENDINGS = _LISTS["town_endings"]
_RIVER_ENDINGS = _LISTS["river_endings"]
_COUNTRY_ENDINGS = _LISTS["country_endings"]
_CREATURES = _LISTS["creatures"]
_ADJECTIVES = _LISTS["adjectives"]
_NOUNS = _LISTS["nouns"]
TRADES = _LISTS["trades"]
_GOODS = _LISTS["goods"]
_GENRES = _LISTS["genres"]
_MONTHS = _LISTS["months"]


def _stem(draws: Draws, middles: tuple[str, ...]) -> str:
    return draws.pick(_ONSETS) + draws.pick(_VOWELS) + draws.pick(middles)


def person(draws: Draws) -> str:
    """Return a first and a last name: `Tolmira Kestovic`."""
    first = _stem(draws, _MIDDLES) + draws.pick(_FIRST_ENDINGS)
    return f"{first} {surname(draws)}"


def surname(draws: Draws) -> str:
    """Return a last name."""
    return _stem(draws, _MIDDLES) + draws.pick(_LAST_ENDINGS)


def town(draws: Draws) -> str:
    """Return the name of a town: `Kenderholm`."""
    return _stem(draws, _TOWN_MIDDLES) + draws.pick(_TOWN_ENDINGS)


def country(draws: Draws) -> str:
    """Return the name of a country: `Tolmaria`."""
    return _stem(draws, _MIDDLES) + draws.pick(_COUNTRY_ENDINGS)


def river(draws: Draws) -> str:
    """Return the name of a river, without article: `Vornane`."""
    return _stem(draws, _MIDDLES) + draws.pick(_RIVER_ENDINGS)


def school(draws: Draws) -> str:
    """Return the name of a place of learning, without article."""
    return f"{surname(draws)} {draws.pick(('Academy', 'College', 'Institute', 'Seminary'))}"


def prize(draws: Draws) -> str:
    """Return the name of an award, without article."""
    return f"{surname(draws)} {draws.pick(('Prize', 'Medal', 'Cup', 'Ribbon', 'Laurel'))}"


def sign(draws: Draws) -> str:
    """Return what ships, taverns and newspapers are called, without article: `Amber Heron`."""
    return f"{draws.pick(_ADJECTIVES)} {draws.pick(_CREATURES)}"


def title(draws: Draws) -> str:
    """Return the title of a book, a play, a picture or a piece of music."""
    first, second = draws.sample(_NOUNS, 2)
    adjective = draws.pick(_ADJECTIVES)
    return draws.pick(
        (
            f"The {adjective} {first}",
            f"The {first} and the {second}",
            f"The {adjective} {first} of {town(draws)}",
            f"{adjective} {first}, {draws.pick(_ADJECTIVES)} {second}",
            f"No {second} for the {adjective} {first}",
            f"Beyond the {adjective} {first}",
        )
    )


def trade(draws: Draws) -> str:
    """Return a profession, without article."""
    return draws.pick(TRADES)


def genre(draws: Draws) -> str:
    """Return a kind of story that can be read or performed, without article."""
    return draws.pick(_GENRES)


def goods(draws: Draws) -> str:
    """Return something that is made and sold, a plural or a substance."""
    return draws.pick(_GOODS)


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
    return f"{draws.between(1, 28)} {draws.pick(_MONTHS)}"


def with_article(noun: str) -> str:
    """Return `noun` after `a` or `an`, for nouns that are spoken as they are spelled."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"
