"""What is known of each row besides token statistics, as tables: one row a text, in order.

What would show a withheld text (its parts, what a model wrote after it) is null; reasons, counts
and numbers are there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from detect.choices.answers import ChoiceAnswers
from detect.choices.question import LABELS, ORDERS
from detect.generation.continuations import Continued
from detect.generation.guesses import GuessedText
from detect.gradients.norms import GradientNorms
from detect.neighbours.neighbours import NeighbourMeans
from inject.errors import InputError

_TEXT, _TEXTS, _COUNT = pa.string(), pa.list_(pa.string()), pa.int64()
_NUMBER, _NUMBERS = pa.float64(), pa.list_(pa.float64())


class RowKind(NamedTuple):
    """How the rows of one kind of evidence are written."""

    make: type[Any]
    columns: Mapping[str, pa.DataType]
    """One for each field."""
    texts: tuple[str, ...] = ()
    """Columns that show the text."""
    shapes: Mapping[str, tuple[int, ...]] = {}
    """Of columns that are arrays."""


ROW_KINDS: Mapping[str, RowKind] = {
    "continuations": RowKind(
        Continued,
        {
            "beginning": _TEXT,
            "rest": _TEXT,
            "texts": _TEXTS,
            "tokens_in": _COUNT,
            "tokens_out": _COUNT,
            "reason": _TEXT,
        },
        texts=("beginning", "rest", "texts"),
    ),
    "guesses": RowKind(
        GuessedText,
        {
            "wanted": _TEXTS,
            "written": _TEXTS,
            "filtered": _COUNT,
            "tokens_in": _COUNT,
            "tokens_out": _COUNT,
            "reason": _TEXT,
        },
        texts=("wanted", "written"),
    ),
    "choices": RowKind(
        ChoiceAnswers,
        {
            "log_probability": pa.list_(pa.float32()),
            "letters": pa.list_(pa.int8()),
            "reason": _TEXT,
            "document": _TEXT,
        },
        shapes={"log_probability": (len(ORDERS), len(LABELS)), "letters": (len(ORDERS),)},
    ),
    "gradients": RowKind(
        GradientNorms,
        {"whole": _NUMBER, "tensors": _NUMBERS, "embeddings": _NUMBERS, "reason": _TEXT},
    ),
    "neighbours": RowKind(NeighbourMeans, {"means": _NUMBERS, "reason": _TEXT}),
}
"""By the name of the field of `Evidence` that holds them."""


def table_of(rows: Sequence[Any], kind: str, withheld: npt.NDArray[np.bool_]) -> pa.Table:
    """Return rows as a table.

    Args:
        rows: of a kind of `ROW_KINDS`.
        kind: which one.
        withheld: which rows' texts must not be shown.
    """
    how = ROW_KINDS[kind]
    columns = []
    for name, column in how.columns.items():
        values = [_plain(getattr(row, name)) for row in rows]
        if name in how.texts:
            values = [None if gone else value for value, gone in zip(values, withheld, strict=True)]
        columns.append(pa.array(values, column))
    return pa.Table.from_arrays(columns, names=list(how.columns))


def rows_of(table: pa.Table, kind: str, *, where: str) -> tuple[Any, ...]:
    """Return the rows of a table; the texts of one that withholds them are empty.

    Args:
        table: of `table_of`.
        kind: as there.
        where: the part, for messages.

    Raises:
        InputError: its columns are not those of the kind.
    """
    how = ROW_KINDS[kind]
    found = dict(zip(table.schema.names, table.schema.types, strict=True))
    if found != dict(how.columns):
        raise InputError(
            f"holds the columns {', '.join(found)}",
            where=where,
            allowed=", ".join(how.columns),
        )
    columns = {
        name: [_value(value, name, how) for value in table[name].to_pylist()]
        for name in how.columns
    }
    return tuple(
        how.make(**dict(zip(columns, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist()
    return list(value) if isinstance(value, tuple) else value


def _value(value: Any, name: str, how: RowKind) -> Any:
    column = how.columns[name]
    if value is None and name in how.texts:
        return () if pa.types.is_list(column) else ""
    if value is None or not pa.types.is_list(column):
        return value
    if name in how.shapes:
        kind = column.value_type.to_pandas_dtype()
        return np.array(value, kind).reshape(how.shapes[name])
    return tuple(value)
