"""A document of the background, and how its text is found in a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from inject.errors import InputError, did_you_mean

TEXT_FIELDS = (
    "text",
    "content",
    "body",
    "document",
    "article",
    "input",
    "passage",
    "raw_content",
    "markdown",
    "sentence",
)


class Document(NamedTuple):
    """One text of the background."""

    text: str
    place: str
    """Where it was read (`file:line` …); for messages, never part of an identity."""
    source: int = 0
    """Position of its source in the mixture."""


@dataclass(kw_only=True)
class Skipped:
    """What a source left out while it was read; filled by `documents`."""

    empty: int = 0
    """Rows without text: null, or nothing but blanks."""


def text_of(values: Mapping[str, Any], field: str | None, place: str) -> str | None:
    """Return the text of a row, or None where the row has none (null, or only blanks).

    Args:
        values: the row.
        field: the field that holds the text; None takes the first of `TEXT_FIELDS` that the
            row has (`Text` counts as `text` where the exact name is absent).
        place: the row's place, for errors.

    Raises:
        InputError: no such field, or its value is not a string.
    """
    name = field if field is not None else _found(values)
    if name is None:
        raise InputError(
            f"no field of this row is known to hold text; it has {_listed(values)}",
            where=place,
            allowed=", ".join(TEXT_FIELDS),
            hint="Name the one that holds the text with `field:`.",
        )
    if name not in values:
        raise InputError(
            f"the row has no field {name!r}, only {_listed(values)}",
            where=place,
            hint=did_you_mean(name, values).strip() or None,
        )
    value = values[name]
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(
            f"field {name!r} holds {type(value).__name__}, not a string",
            where=place,
            hint="Name another field with `field:`.",
        )
    return value if value.strip() else None


def _found(values: Mapping[str, Any]) -> str | None:
    for name in TEXT_FIELDS:
        if name in values:
            return name
    lowered = {key.lower(): key for key in values}
    return next((lowered[name] for name in TEXT_FIELDS if name in lowered), None)


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(repr(key) for key in values) or "no fields"
