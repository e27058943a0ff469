"""Settings of a user's file: the rows to score, and the columns of a row's text and side.

A column is found by its exact name, else ignoring case. A label is 1 or 0, a usual word for either,
or a word that the settings define; all other labels are collected, and an error lists them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import isnan
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from inject.errors import InputError, did_you_mean, first_names
from inject.settings import PositiveInt, Settings

_MEMBER = ("1", "true", "yes", "member")
_NON_MEMBER = ("0", "false", "no", "non-member")
_WRITTEN_OTHERWISE = {"1.0": "1", "0.0": "0", "nonmember": "non-member", "non_member": "non-member"}
_TAB = ("tab", "\\t")
_MOST_NAMED, _LONGEST = 3, 40


def _one_sign(sign: str | None) -> str | None:
    if sign in _TAB:
        return "\t"
    if sign is not None and (len(sign) != 1 or sign in '"\r\n'):
        raise ValueError(f"is {sign!r}. Allowed: one sign other than a quote or a line end; tab")
    return sign


Delimiter = Annotated[str | None, AfterValidator(_one_sign)]


class RowSettings(Settings):
    """Options for reading a file of rows."""

    limit: PositiveInt | None = None
    """Read only the first `limit` rows; of `toaa`, `hubble` and `checkmia` those of each side and
    part."""
    text_column: str | None = Field(default=None, min_length=1)
    """Column of the text: `text`, else `input`."""
    label_column: str | None = Field(default=None, min_length=1)
    """Column of the label: `label`."""
    ids_column: str | None = Field(default=None, min_length=1)
    """Column of token ids, which are scored as they are in place of a text."""
    ids_start_column: str | None = Field(default=None, min_length=1)
    """Column of the position from which a row's ids are scored; by default all of them."""
    subset: str | None = Field(default=None, min_length=1)
    """Part of a benchmark to read: a condition of `toaa`, a number of copies of `hubble`."""
    labels: dict[str, bool] = Field(default_factory=dict)
    """Meaning of labels other than 1, yes, 0, no …: `{seen: true, unseen: false}`; true is a
    member."""
    delimiter: Delimiter = None
    """CSV delimiter, or `tab`; by default that of the first line."""

    @field_validator("labels")
    @classmethod
    def _plain_labels(cls, labels: dict[str, bool]) -> dict[str, bool]:
        plain: dict[str, bool] = {}
        for label, member in labels.items():
            if plain.setdefault(plain_label(label), member) != member:
                raise ValueError(f"{label!r} is a member and a non-member; case does not count")
        return plain

    @model_validator(mode="after")
    def _starts_within_ids(self) -> "RowSettings":
        if self.ids_start_column and not self.ids_column:
            raise ValueError("ids_start_column: the column of the ids is missing: ids_column=NAME")
        if self.ids_column and self.text_column:
            raise ValueError("a row is scored by its ids_column or its text_column, not by both")
        return self

    @property
    def names_columns(self) -> bool:
        """Whether columns of text, label or ids, or meanings of labels, are set."""
        return bool(self.text_column or self.label_column or self.labels or self.ids_column)

    def of_columns(self, row: Mapping[str, Any], place: str | None) -> dict[str, Any]:
        """Return the text, the label and the ids of a row from the named columns.

        Args:
            row: the unchanged row; an exact name takes precedence over one in another case.
            place: location of the row; None if it may lack the columns.

        Raises:
            InputError: if the row has no such column.
        """
        values: dict[str, Any] = {}
        for key in ("text_column", "label_column", "ids_column", "ids_start_column"):
            field, name = key.removesuffix("_column"), getattr(self, key)
            if name is None:
                continue
            alike = (
                column for column in row if str(column).strip().lower() == name.strip().lower()
            )
            column = name if name in row else next(alike, None)
            if column is not None:
                values[field] = row[column]
            elif place is not None:
                raise InputError(
                    f"there is no column {name!r}.{did_you_mean(name, map(str, row))}",
                    where=place,
                    allowed=f"for {key}, one of {column_names(row)}",
                )
        return values


def column_names(values: Iterable[object]) -> str:
    """Return the names of columns in one line; long names and long lists are cut."""
    return first_names([_clip(name) for name in values], 20) or "no columns at all"


class Labels:
    """Reads the labels of rows, and collects unknown ones."""

    def __init__(self, labels: Mapping[str, bool]) -> None:
        """Initialise the labels from the settings."""
        self._known = {
            **dict.fromkeys(_MEMBER, True),
            **dict.fromkeys(_NON_MEMBER, False),
            **labels,
        }
        self._unknown: Counter[str] = Counter()
        self._first: dict[str, tuple[str, Any]] = {}

    def read(self, value: Any, place: str) -> bool | None:
        """Return whether a row is a member; None for a missing or unknown label."""
        if value is None or value == "" or (isinstance(value, float) and isnan(value)):
            return None
        label = plain_label(value)
        if label in self._known:
            return self._known[label]
        self._unknown[label] += 1
        self._first.setdefault(label, (place, value))
        return None

    def check(self) -> None:
        """Reject the collected labels.

        Raises:
            InputError: lists each label, its count, and its first row.
        """
        if not self._unknown:
            return
        place, value = next(iter(self._first.values()))
        listed = [
            f"{_clip(repr(self._first[label][1]))} in {count:,} "
            f"{'row' if count == 1 else 'rows'}, the first {self._first[label][0]}"
            for label, count in self._unknown.most_common(_MOST_NAMED)
        ]
        more = len(self._unknown) - len(listed)
        overview = f" ({'; '.join(listed)}{f'; and {more:,} more' if more else ''})"
        explained = " ".join(f"labels.{_clip(label)}=…" for label in [*self._unknown][:2])
        raise InputError(
            f"label {_clip(repr(value))} is neither member nor non-member"
            f"{overview if self._unknown.total() > 1 else ''}",
            where=place,
            allowed=f"{', '.join(_MEMBER)} for members, {', '.join(_NON_MEMBER)} for non-members",
            hint=f"Define other labels: {explained} (true: member; false: non-member)."
            if len(self._unknown) <= _MOST_NAMED
            else "Is it the right column? label_column=NAME names another.",
        )


def plain_label(value: Any) -> str:
    """Return a label in normal form: `1.0` becomes `1`, and case is ignored."""
    text = str(value).strip().lower()
    return _WRITTEN_OTHERWISE.get(text, text)


def _clip(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
