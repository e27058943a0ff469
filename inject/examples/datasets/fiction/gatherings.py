"""Invented gatherings: place, opening day and year, and eleven further facts.

The sentences are in `gatherings.txt`; `subject` explains their notation.
"""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.data import data_text
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Naming, Subject, read_subject, slots

_KINDS = (
    *("Congress", "Exhibition", "Fair", "Regatta", "Assembly", "Festival", "Council"),
    *("Tournament", "Conference", "Pageant", "Convention", "Carnival"),
)


def _naming(draws: Draws, lead: Mapping[str, str]) -> Naming:
    kind = draws.pick(_KINDS)
    name = f"the {names.surname(draws)} {kind}"
    noun = kind.lower()
    pronouns = ("it", "its", "it")
    return Naming(
        name=name,
        full=slots(name, f"{name}'s", pronouns, noun),
        references=(
            slots("it", "its", pronouns, noun),
            slots("the event", "the event's", pronouns, noun),
            slots(f"the {noun}", f"the {noun}'s", pronouns, noun),
        ),
    )


def gatherings() -> Subject:
    """Return the gatherings."""
    return read_subject("gathering", data_text("gatherings.txt"), _naming)
