"""Invented works: kind, author and year, and eleven further facts.

The sentences are in `works.txt`; `subject` explains their notation.
"""

from collections.abc import Mapping

from inject.examples.datasets.fiction import names
from inject.examples.datasets.fiction.data import data_text
from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.subject import Naming, Subject, read_subject, slots


def _naming(draws: Draws, lead: Mapping[str, str]) -> Naming:
    name = f'"{names.title(draws)}"'
    genre = lead["genre"]
    pronouns = ("it", "its", "it")
    return Naming(
        name=name,
        full=slots(f"the {genre} {name}", f"the {genre}'s", pronouns, genre),
        references=(
            slots("it", "its", pronouns, genre),
            slots("the work", "the work's", pronouns, genre),
            slots(f"the {genre}", f"the {genre}'s", pronouns, genre),
        ),
    )


def works() -> Subject:
    """Return the works."""
    return read_subject("work", data_text("works.txt"), _naming)
