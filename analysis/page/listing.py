"""Tables of texts without columns that say nothing: empty ones go, a value of all is said once."""

from collections.abc import Sequence
from dataclasses import dataclass

NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A table of texts; the first column heads its rows."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    worded: tuple[bool, ...]
    """Whether a column holds words, which stand to the left."""


def listing(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = ""
) -> Listing | None:
    """Return the rows with the columns in which they differ; None where there are none.

    Args:
        title: of the table.
        columns: heads; the first column is always kept.
        rows: texts, one a column; empty where there is nothing to say.
        caption: what stands under the title.
    """
    if not rows:
        return None
    values = [list(dict.fromkeys(row[at] for row in rows)) for at in range(len(columns))]
    # A single row differs from no other: whatever it says is kept.
    alike = [len(rows) > 1 and len(found) == 1 for found in values]
    kept = [0, *(at for at in range(1, len(columns)) if not alike[at] and any(values[at]))]
    said = [
        f"{columns[at]} of all: {values[at][0]}."
        for at in range(1, len(columns))
        if alike[at] and values[at][0]
    ]
    return Listing(
        title=title,
        caption=" ".join([caption, *said]).strip(),
        columns=tuple(columns[at] for at in kept),
        rows=tuple(tuple(row[at] or NOTHING for at in kept) for row in rows),
        worded=tuple(any(text[:1].isalpha() for text in values[at]) for at in kept),
    )
