"""A document of the background, the sources that yield them, and how a row's text is found.

The user writes a source as a mapping under `corpus.sources`; `kind` selects the class that reads
it. A source of one's own is a subclass of `Source` in a file (`kind: FILE.py:NAME`) or an entry
point of the group `spikein.sources`. Its fields are its options, validated as those of any other
source.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from inject.errors import InputError, did_you_mean
from inject.settings import PositiveFloat, Settings

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
    """Its place (`file:line` …); for messages, never part of an identity."""
    source: int = 0
    """Position of its source in the mixture."""


@dataclass(kw_only=True)
class Skipped:
    """Counts of rows skipped while a source was read; filled by `documents`."""

    empty: int = 0
    """Rows without text: null, or nothing but blanks."""


class Source(Settings, ABC):
    """A source of documents for the background."""

    kind: Annotated[str, Field(min_length=1)]
    """Which source it is: its name, or `FILE.py:NAME`."""
    weight: PositiveFloat = 1.0
    """Share of this source in the bytes of the mixture, relative to the other weights."""

    finite: ClassVar[bool] = True
    """True: the source is read whole (at most 2 GiB) and put in keyed order; False: it may be
    without end, and keeps its own order."""

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return self.kind

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the inputs that determine the documents, as plain JSON values.

        The content of files counts, by its digest (`inject.reading.rows.files_identity`), never
        their folder. The caller adds the source's code.
        """

    @abstractmethod
    def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
        """Yield the documents in a fixed order, none of them empty.

        Args:
            skipped: counts skipped rows, if given.
        """


def text_of(values: Mapping[str, Any], field: str | None, place: str) -> str | None:
    """Return the text of a row, or None if the row has none (null, or only blanks).

    Args:
        values: the row.
        field: the field with the text; None takes the first of `TEXT_FIELDS` that the row has
            (`Text` counts as `text` if the exact name is absent).
        place: the row's place, for errors.

    Raises:
        InputError: no such field, or its value is not a string.
    """
    name = field if field is not None else _find_text_field(values)
    if name is None:
        raise InputError(
            f"no field of this row has a usual name for text; it has {_list_fields(values)}",
            where=place,
            allowed=", ".join(TEXT_FIELDS),
            hint="Name the text's field with `field:`.",
        )
    if name not in values:
        raise InputError(
            f"the row has no field {name!r}, only {_list_fields(values)}",
            where=place,
            hint=did_you_mean(name, values).strip() or None,
        )
    value = values[name]
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(
            f"field {name!r} contains {type(value).__name__}, not a string",
            where=place,
            hint="Name another field with `field:`.",
        )
    return value if value.strip() else None


def row_documents(
    rows: Iterable[tuple[str, Mapping[str, Any]]], field: str | None, skipped: Skipped | None
) -> Iterator[Document]:
    """Yield a document for each row, a place and its values, that has text.

    Raises:
        InputError: as `text_of`.
    """
    for place, values in rows:
        text = text_of(values, field, place)
        if text is not None:
            yield Document(text, place)
        elif skipped is not None:
            skipped.empty += 1


def _find_text_field(values: Mapping[str, Any]) -> str | None:
    for name in TEXT_FIELDS:
        if name in values:
            return name
    lowered = {key.lower(): key for key in values}
    return next((lowered[name] for name in TEXT_FIELDS if name in lowered), None)


def _list_fields(values: Mapping[str, Any]) -> str:
    return ", ".join(repr(key) for key in values) or "no fields"
