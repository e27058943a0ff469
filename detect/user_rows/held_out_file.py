"""The file of held-out texts beside the rows that are scored: apart from them, or refused.

Texts are compared by their words, whatever their case, punctuation and spaces: a shot that is
scored as well would give its own row away.
"""

from typing import NamedTuple

from detect.user_rows.labelled_rows import LabelledRows, read_labelled
from inject.errors import InputError
from inject.words import words_of

_NAMED = 5


class HeldOutText(NamedTuple):
    """A row of a held-out file."""

    text: str
    member: bool
    """Whether its label is 1."""
    paraphrases: tuple[str, ...] = ()
    title: str = ""
    document: str = ""
    """What it is a part of, by its group; a text without one is a document of its own."""


class KnownTexts(NamedTuple):
    """The texts of a held-out file, equal ones once."""

    rows: list[HeldOutText]
    protected: tuple[str, ...] = ()
    """Names of the protected datasets that rows are of."""

    @property
    def nonmembers(self) -> list[str]:
        """Texts without a label, or with label 0."""
        return [row.text for row in self.rows if not row.member]

    @property
    def groups(self) -> list[str]:
        """What each of the non-members is a part of; itself where it has no group."""
        return [row.document or row.text for row in self.rows if not row.member]

    @property
    def members(self) -> list[str]:
        """Texts with label 1."""
        return [row.text for row in self.rows if row.member]

    @property
    def paraphrased(self) -> list[HeldOutText]:
        """Rows that are no members and bring paraphrases."""
        return [row for row in self.rows if not row.member and row.paraphrases]


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
    found: dict[str, HeldOutText] = {}
    for number, text in enumerate(rows.texts, start=1):
        if not text.strip():
            continue
        row = _row(rows, number - 1)
        if found.setdefault(_normal(text), row).member != row.member:
            raise InputError(
                f"row {number} stands there as a member and as a non-member", where=pattern
            )
    if not found:
        raise InputError("there is no text in it", where=pattern)
    return KnownTexts(list(found.values()), rows.protected)


def _row(rows: LabelledRows, at: int) -> HeldOutText:
    return HeldOutText(
        rows.texts[at],
        bool(rows.labels and rows.labels[at]),
        rows.paraphrases[at] if rows.paraphrases else (),
        rows.titles[at] if rows.titles else "",
        rows.groups[at] if rows.groups else rows.texts[at],
    )


def _normal(text: str) -> str:
    return " ".join(words_of(text)) or text.strip()
