"""The file of held-out texts beside the rows that are scored: apart from them, or refused.

Texts are compared by their words, whatever their case, punctuation and spaces: a shot that is
scored as well would give its own row away.
"""

from typing import NamedTuple

from detect.score_file.labelled_rows import LabelledRows, read_labelled
from inject.errors import InputError
from inject.words import words_of

_NAMED = 5


class KnownTexts(NamedTuple):
    """The texts of a held-out file, equal ones once."""

    nonmembers: list[str]
    """Without a label, or with label 0."""
    members: list[str]
    """With label 1."""
    groups: list[str]
    """Of the non-members: those of one group share a passage."""


def read_held_out_file(pattern: str, scored: LabelledRows) -> KnownTexts:
    """Read the held-out texts.

    Args:
        pattern: a file, folder or glob of rows, as those that are scored.
        scored: the rows that are scored.

    Raises:
        InputError: a text that is scored as well, a text that stands there as a member and as a
            non-member, or a file without texts; as `read_labelled`.
    """
    rows = read_labelled(pattern)
    places: dict[str, int] = {}
    for place, text in enumerate(scored.texts, start=1):
        places.setdefault(_normal(text), place)
    shared = [
        (number, places[_normal(text)])
        for number, text in enumerate(rows.texts, start=1)
        if text.strip() and _normal(text) in places
    ]
    if shared:
        named = ", ".join(f"row {one} (scored row {other})" for one, other in shared[:_NAMED])
        more = f" and {len(shared) - _NAMED:,} more" if len(shared) > _NAMED else ""
        raise InputError(
            f"{len(shared):,} held-out texts are scored as well: {named}{more}",
            where=pattern,
            hint="Take them out of one of the two files: a held-out text is never scored.",
        )
    found: dict[str, tuple[str, bool, str]] = {}
    for number, text in enumerate(rows.texts, start=1):
        if not text.strip():
            continue
        member = bool(rows.labels and rows.labels[number - 1])
        group = rows.groups[number - 1] if rows.groups else None
        name = f"row {number}" if group is None else f"group {group}"
        if found.setdefault(_normal(text), (text, member, name))[1] != member:
            raise InputError(
                f"row {number} stands there as a member and as a non-member", where=pattern
            )
    if not found:
        raise InputError("there is no text in it", where=pattern)
    return KnownTexts(
        nonmembers=[text for text, member, _ in found.values() if not member],
        members=[text for text, member, _ in found.values() if member],
        groups=[name for _, member, name in found.values() if not member],
    )


def _normal(text: str) -> str:
    return " ".join(words_of(text)) or text.strip()
