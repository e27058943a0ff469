"""Invented people: trade, birthplace and year of birth, and fifteen further facts.

The sentences are in `people.txt`; `subject` explains their notation.
"""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.data import data_text
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Naming, Subject, read_subject, slots


def _naming(draws: Draws, lead: Mapping[str, str]) -> Naming:
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


def people() -> Subject:
    """Return the people."""
    return read_subject("person", data_text("people.txt"), _naming)
