"""From a row's fields to text, with the place of every field in it.

A template is text with placeholders: `{question}` stands for a field whose value is a text or a
list of texts. A list is written one item a line, lettered: `{options}` gives `A. …`,
`{options:(A)}` gives `(A) …`; whatever surrounds the `A` after the colon surrounds each
letter. `{{` and `}}` are literal braces. Nothing else is interpreted: no attributes, no
indices, no code.

Invariant: `text[span.start:span.stop]` is exactly the field as it was written. A field that occurs
twice keeps the span of its first occurrence.
"""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from inject.errors import InputError, unknown_name
from inject.examples.example import Span

_LABEL = "A."


class Rendered(NamedTuple):
    """A rendered text and the characters that each of its fields takes up."""

    text: str
    spans: Mapping[str, Span]


_Part = tuple[str, str | None, str]
"""Literal text, the field that follows it, and how its letters are written."""


@dataclass(frozen=True)
class Template:
    """A parsed template; make one with `parse_template`."""

    parts: tuple[_Part, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that it names, in order, each once."""
        return tuple(dict.fromkeys(name for _, name, _ in self.parts if name is not None))

    def fits(self, fields: Mapping[str, Any]) -> bool:
        """Return whether `fields` has every field that the template names."""
        return all(name in fields for name in self.names)

    def render(self, fields: Mapping[str, Any]) -> Rendered:
        """Return the text and spans for one row.

        Raises:
            InputError: a placeholder that `fields` does not have, or whose value is neither
                a text nor a list of texts. Field values never appear in the message.
        """
        pieces: list[str] = []
        spans: dict[str, Span] = {}
        length = 0
        for literal, name, label in self.parts:
            pieces.append(literal)
            length += len(literal)
            if name is None:
                continue
            written = _write_field(name, label, fields)
            spans.setdefault(name, Span(length, length + len(written)))
            pieces.append(written)
            length += len(written)
        return Rendered("".join(pieces), spans)


def parse_template(template: str) -> Template:
    """Return the parsed template.

    Raises:
        InputError: unbalanced braces, a placeholder that is not a plain name, a label without
            an `A`, or no placeholder at all (every row would be the same text).
    """
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InputError(
            f"template: {error}.", hint="Write literal braces as {{ and }}."
        ) from error
    parts = tuple(_part(*piece) for piece in pieces)
    if all(name is None for _, name, _ in parts):
        raise InputError("template: names no field, so every row would be the same text.")
    return Template(parts)


def lettered(items: Iterable[str], label: str = _LABEL) -> str:
    """Return the items, one per line, after letters in the form of `label` (`A.`, `(A)`, …)."""
    before, after = label.split("A", 1)
    return "\n".join(f"{before}{letter(index)}{after} {item}" for index, item in enumerate(items))


def letter(index: int) -> str:
    """Return A for 0, Z for 25, then AA, AB, … as spreadsheets count."""
    name = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        name = string.ascii_uppercase[digit] + name
    return name


def unknown_placeholder(name: str, fields: Iterable[str]) -> InputError:
    """Return the error for a placeholder that a row has no field for."""
    none = "none; the row has no fields"
    return unknown_name(f"template: no field {name!r}", name, sorted(fields), none=none)


def _part(literal: str, name: str | None, label: str | None, conversion: str | None) -> _Part:
    if name is None:
        return literal, None, ""
    if not name.isidentifier() or conversion:
        raise InputError(
            f"template: {name!r} is not a plain field name.",
            allowed="letters, digits and underscores",
            hint="Write literal braces as {{ and }}.",
        )
    if label and label.count("A") != 1:
        raise InputError(
            f"template: {{{name}:{label}}} has no place for the letter.",
            allowed="a label with one A in it, such as {options:A.} or {options:(A)}",
        )
    return literal, name, label or ""


def _write_field(name: str, label: str, fields: Mapping[str, Any]) -> str:
    if name not in fields:
        raise unknown_placeholder(name, fields)
    value = fields[name]
    if isinstance(value, str) and not label:
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return lettered(value, label or _LABEL)
    raise InputError(
        f"template: field {name!r} contains a {type(value).__name__}.",
        allowed=f"a list of texts for {{{name}:{label}}}" if label else "a text or a list of texts",
    )
