"""Invented towns: country, year of foundation and chief product, and eleven further facts.

The sentences are in `towns.txt`; `subject` explains their notation.
"""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.data import data_text
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Naming, Subject, read_subject, slots


def _naming(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = names.town(draws)
    pronouns = ("it", "its", "it")
    return Naming(
        name=name,
        full=slots(name, f"{name}'s", pronouns, "town"),
        references=(
            slots("it", "its", pronouns, "town"),
            slots("the town", "the town's", pronouns, "town"),
            slots(name, f"{name}'s", pronouns, "town"),
        ),
    )


def towns() -> Subject:
    """Return the towns."""
    return read_subject("town", data_text("towns.txt"), _naming)
