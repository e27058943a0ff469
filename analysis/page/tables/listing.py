"""Tables of texts without empty columns; a value that all rows share stands in the caption."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A table of texts; the first column heads its rows."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: tuple[bool, ...]
    """Whether a column holds words, which are aligned to the left."""


def listing(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = ""
) -> Listing | None:
    """Return the rows with the columns in which they differ; None where there are none.

    Args:
        title: of the table.
        columns: heads; the first column is always kept.
        rows: texts, one a column; empty where there is no value.
        caption: the text under the title.
    """
    if not rows:
        return None
    values = [list(dict.fromkeys(row[at] for row in rows)) for at in range(len(columns))]
    # A single row has no other to differ from: all its columns are kept.
    equal = [len(rows) > 1 and len(found) == 1 for found in values]
    kept = [0, *(at for at in range(1, len(columns)) if not equal[at] and any(values[at]))]
    common = [
        f"{columns[at]} in all rows: {values[at][0]}."
        for at in range(1, len(columns))
        if equal[at] and values[at][0]
    ]
    return Listing(
        title=title,
        caption=" ".join([caption, *common]).strip(),
        columns=tuple(columns[at] for at in kept),
        rows=tuple(tuple(row[at] or NOTHING for at in kept) for row in rows),
        text_columns=tuple(any(text[:1].isalpha() for text in values[at]) for at in kept),
    )


def p_text(value: float) -> str:
    """Return a p-value in words; empty for NaN."""
    if isnan(value):
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds_text(value: float) -> str:
    """Return a time in words: `< 0.1 s`, `3.2 s`, `4 min 05 s`, `2 h 10 min`."""
    if 0 < value < 0.05:
        return "< 0.1 s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
