"""Benchmarks whose members were drawn: inserted in training, or trained on before a checkpoint.

Members and non-members come from one distribution, so `blind` should not separate them. Columns and
files are those that the authors document.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from detect.user_rows.id_columns import IdRows
from detect.user_rows.labelled_rows import LabelledRows, placed_rows
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError, first_names
from inject.examples.example import example_id

TOAA: Mapping[str, tuple[Any, ...]] = {
    "condition": (),
    "suffix_type": ("plain", "rare", "random", "model_based"),
    "n_suffix_tokens": (0, 1, 8, 32),
    "duplication": (1, 4, 16),
    "input_ids": (),
    "suffix_start": (),
    "membership": (0, 1),
}
"""The columns, and their values if these are few."""
_SPLITS = ("member-", "nonmember-")
_NAMED = 40


class _Row(NamedTuple):
    """A row of a benchmark."""

    text: str
    member: bool
    subset: str
    part: str
    """As in `LabelledRows.parts`."""


def _rows_of(rows: Iterator[_Row], name: str, pattern: str, how: RowSettings) -> LabelledRows:
    """Return the rows of a subset, `limit` of each side of each part."""
    if how.names_columns:
        raise InputError(f"the columns of {name} are known, and cannot be named", where=pattern)
    chosen: list[_Row] = []
    subsets: dict[str, None] = {}
    counts, limited = Counter[tuple[str, bool]](), False
    for row in rows:
        subsets[row.subset] = None
        # Non-members without a part belong to every subset.
        if how.subset not in (None, row.subset) and row.part:
            continue
        if counts[row.part, row.member] == how.limit:
            limited = True
            continue
        counts[row.part, row.member] += 1
        chosen.append(row)
    if how.subset is not None and how.subset not in subsets:
        names = first_names(sorted(subsets), _NAMED)
        raise InputError(f"there is no subset {how.subset!r}", where=pattern, allowed=names)
    for member, side in ((True, "members"), (False, "non-members")):
        if not any(row.member is member for row in chosen):
            raise InputError(f"the rows have no {side}", where=pattern)
    return LabelledRows(
        texts=[row.text for row in chosen],
        ids=[example_id(row.text) for row in chosen],
        labels=[row.member for row in chosen],
        groups=None,
        limited=limited,
        parts=[row.part for row in chosen],
    )


def _check_columns(
    values: Mapping[str, Any], columns: Mapping[str, tuple[Any, ...]], place: str
) -> None:
    for name, allowed in columns.items():
        if name not in values:
            problem, allowed = f"there is no column {name!r}", tuple(columns)
        elif not allowed or values[name] in allowed:
            continue
        else:
            problem = f"{name} is {values[name]!r}"
        raise InputError(problem, where=place, allowed=", ".join(map(str, allowed)))


def read_toaa(pattern: str, how: RowSettings) -> LabelledRows:
    """Read ids, from the suffix on if there is one (as the authors score them)."""
    id_rows = IdRows()

    def rows() -> Iterator[_Row]:
        for place, values in placed_rows(pattern, how):
            _check_columns(values, TOAA, place)
            start = values["suffix_start"] if values["n_suffix_tokens"] else None
            condition = str(values["condition"])
            chosen = how.subset in (None, condition)
            text = id_rows.text(values["input_ids"], start, place) if chosen else ""
            yield _Row(text, values["membership"] == 1, condition, f"condition {condition}")

    read = _rows_of(rows(), "toaa", pattern, how)
    return read._replace(highest_id=id_rows.highest)


def read_hubble(pattern: str, how: RowSettings) -> LabelledRows:
    """Read texts with their number of copies, in a column or in `meta`."""

    def rows() -> Iterator[_Row]:
        for place, values in placed_rows(pattern, how):
            text, copies = values.get("text"), _copies(values)
            if not isinstance(text, str) or type(copies) is not int or copies < 0:
                problem = f"the row has the text {str(text)[:_NAMED]!r} and {copies!r} duplicates"
                raise InputError(problem, where=place, allowed="a text, and a number of copies")
            yield _Row(text, copies > 0, str(copies), f"{copies} copies" if copies else "")

    return _rows_of(rows(), "hubble", pattern, how)


def _copies(values: Mapping[str, Any]) -> Any:
    """Return the `duplicates` of a row, or of its `meta`, which may be JSON; None without any."""
    meta = values.get("meta") or {}
    try:
        return {**(json.loads(meta) if isinstance(meta, str) else meta), **values}.get("duplicates")
    except (ValueError, TypeError):
        return values.get("duplicates")


def read_checkmia(pattern: str, how: RowSettings) -> LabelledRows:
    """Read ids; the name of a file is that of its split, which is the side."""
    id_rows = IdRows()

    def rows() -> Iterator[_Row]:
        for place, values in placed_rows(pattern, how):
            name = Path(place.rpartition(":")[0]).name
            if not name.startswith(_SPLITS):
                problem = "the file's name does not begin with that of a split"
                raise InputError(problem, where=place, allowed="member-…, nonmember-…")
            _check_columns(values, {"tokens": ()}, place)
            text = id_rows.text(values["tokens"], None, place)
            yield _Row(text, name.startswith(_SPLITS[0]), "", "")

    read = _rows_of(rows(), "checkmia", pattern, how)
    return read._replace(highest_id=id_rows.highest, parts=None)
