"""Token ids in a user's rows: checked, and turned into texts (`detect.engine.token_ids`).

Ids of the vocabulary are numbers from 0 on. Its size is the model's, so the highest id of all rows
is kept with its place, for a check once the model is known.
"""

from typing import Any, NamedTuple

from detect.engine.token_ids import ids_text
from inject.errors import InputError


class HighestId(NamedTuple):
    """The highest token id of the rows."""

    id: int
    """−1 if the rows have no ids."""
    place: str
    """Location of its row."""


class IdRows:
    """Reads the ids of rows, and remembers the highest."""

    def __init__(self) -> None:
        """Begin without a row."""
        self.highest = HighestId(-1, "")

    def text(self, ids: Any, start: Any, place: str) -> str:
        """Return a row's ids as a text; empty for a missing list.

        Args:
            ids: the value of the column of ids.
            start: that of the column of start positions; None if there is none.
            place: location of the row.

        Raises:
            InputError: naming the value and the allowed range.
        """
        if ids is None:
            return ""
        if not isinstance(ids, list | tuple) or not all(type(number) is int for number in ids):
            problem = f"{ids!r:.60} is not a list of token ids"
            raise InputError(problem, where=place, allowed="whole numbers, such as [5, 12, 7]")
        lowest = min(ids, default=0)
        if lowest < 0:
            problem = f"id {lowest} at position {ids.index(lowest)} is below 0"
            raise InputError(problem, where=place, allowed="0 to the last id of the vocabulary")
        if max(ids, default=-1) > self.highest.id:
            self.highest = HighestId(max(ids), place)
        return ids_text(ids, _start(start, len(ids), place))


def _start(value: Any, length: int, place: str) -> int:
    if value is None or length == 0:
        return 0
    if type(value) is not int or not 0 <= value < length:
        raise InputError(
            f"the scored ids start at {value!r:.60}, and the row has {length:,} ids",
            where=place,
            allowed=f"0 to {length - 1:,}",
        )
    return value
