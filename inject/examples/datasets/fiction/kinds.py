"""The kinds of invented subjects, and how a text calls one of each.

- people: trade, birthplace and year of birth, and fifteen further facts;
- towns: country, year of foundation and chief product, and eleven further facts;
- works: kind, author and year, and eleven further facts;
- gatherings: place, opening day and year, and eleven further facts.

The sentences are in a `.txt` of the kind's name; `subject` explains their notation.
"""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.data import data_text
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Naming, Subject, read_subject, slots

_IT = ("it", "its", "it")
_GATHERINGS = (
    *("Congress", "Exhibition", "Fair", "Regatta", "Assembly", "Festival", "Council"),
    *("Tournament", "Conference", "Pageant", "Convention", "Carnival"),
)


def people() -> Subject:
    """Return the people."""
    return read_subject("person", data_text("people.txt"), _person)


def towns() -> Subject:
    """Return the towns."""
    return read_subject("town", data_text("towns.txt"), _town)


def works() -> Subject:
    """Return the works."""
    return read_subject("work", data_text("works.txt"), _work)


def gatherings() -> Subject:
    """Return the gatherings."""
    return read_subject("gathering", data_text("gatherings.txt"), _gathering)


def _person(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = names.person(draws)
    last = name.split()[1]
    trade = lead["trade"]
    pronouns = draws.pick((("she", "her", "her"), ("he", "his", "him")))
    return Naming(
        name=name,
        full=slots(name, f"{name}'s", pronouns, trade),
        references=(
            slots(pronouns[0], pronouns[1], pronouns, trade),
            slots(last, f"{last}'s", pronouns, trade),
            slots(f"the {trade}", f"the {trade}'s", pronouns, trade),
        ),
    )


def _town(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = names.town(draws)
    return Naming(
        name=name,
        full=slots(name, f"{name}'s", _IT, "town"),
        references=(
            slots("it", "its", _IT, "town"),
            slots("the town", "the town's", _IT, "town"),
            slots(name, f"{name}'s", _IT, "town"),
        ),
    )


def _work(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = f'"{names.title(draws)}"'
    genre = lead["genre"]
    return Naming(
        name=name,
        full=slots(f"the {genre} {name}", f"the {genre}'s", _IT, genre),
        references=(
            slots("it", "its", _IT, genre),
            slots("the work", "the work's", _IT, genre),
            slots(f"the {genre}", f"the {genre}'s", _IT, genre),
        ),
    )


def _gathering(draws: Draws, lead: Mapping[str, str]) -> Naming:
    kind = draws.pick(_GATHERINGS)
    name = f"the {names.surname(draws)} {kind}"
    noun = kind.lower()
    return Naming(
        name=name,
        full=slots(name, f"{name}'s", _IT, noun),
        references=(
            slots("it", "its", _IT, noun),
            slots("the event", "the event's", _IT, noun),
            slots(f"the {noun}", f"the {noun}'s", _IT, noun),
        ),
    )
