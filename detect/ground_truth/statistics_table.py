"""Token statistics as a table, by the fields that the dataclass has: new ones change nothing here.

An array of shape [N, …] becomes a list column, with what follows N in the column's metadata; a
mapping from numbers to further arrays becomes one column each, `FIELD/KEY/INNER`. What would show a
withheld text is null in its row.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from detect.ground_truth.withheld import shows_text
from detect.token_statistics import TokenStatistics
from inject.errors import InputError

_SHAPE = b"shape"
_SEPARATOR = "/"


class _Field(NamedTuple):
    """One field of the token statistics."""

    name: str
    kind: str
    """`array`, `mapping` (of numbers to a dataclass of arrays) or `text`."""
    inner: type[Any] | None
    """The dataclass of a mapping."""
    required: bool


def statistics_table(rows: Sequence[TokenStatistics], withheld: npt.NDArray[np.bool_]) -> pa.Table:
    """Return token statistics as a table, one row each, in order.

    Args:
        rows: the statistics.
        withheld: which rows' texts must not be shown.
    """
    names: list[pa.Field] = []
    columns: list[pa.Array] = []

    def add(name: str, arrays: list[npt.NDArray[Any]]) -> None:
        kind, shape = arrays[0].dtype, arrays[0].shape[1:]
        hidden = withheld if shows_text(name.rpartition(_SEPARATOR)[2], kind) else None
        column = _lists(arrays, kind, shape, hidden)
        metadata = {_SHAPE: json.dumps(list(shape)).encode()}
        names.append(pa.field(name, column.type, metadata=metadata))
        columns.append(column)

    for field in _fields():
        values = [getattr(row, field.name) for row in rows]
        if field.kind == "text":
            names.append(pa.field(field.name, pa.string()))
            columns.append(pa.array(values, pa.string()))
        elif field.kind == "array":
            add(field.name, values)
        elif field.inner is not None:
            # A text without a scored token has nothing under any key.
            for key in next((list(value) for value in values if value), []):
                for inner in dataclasses.fields(field.inner):
                    arrays = [
                        getattr(value[key], inner.name) if key in value else np.zeros(0, np.float32)
                        for value in values
                    ]
                    kind = next(array.dtype for array in arrays if len(array))
                    add(
                        _SEPARATOR.join((field.name, repr(key), inner.name)),
                        [array.astype(kind) for array in arrays],
                    )
    return pa.Table.from_arrays(columns, schema=pa.schema(names))


def statistics_rows(table: pa.Table, *, where: str) -> list[TokenStatistics]:
    """Return the token statistics of a table; what a row withholds is -1.

    Args:
        table: of `statistics_table`.
        where: the file, for messages.

    Raises:
        InputError: it lacks a column that this version needs, or has one that it does not know.
    """
    known = {field.name: field for field in _fields()}
    given = dict.fromkeys(name.partition(_SEPARATOR)[0] for name in table.column_names)
    lacking = [name for name, field in known.items() if field.required and name not in given]
    unknown = [name for name in given if name not in known]
    if lacking or unknown:
        raise InputError(
            "its token statistics are of another version: "
            + "; ".join(
                f"{what} {', '.join(names)}"
                for what, names in (("lacks", lacking), ("has the unknown", unknown))
                if names
            ),
            where=where,
            hint="Bundle the run again with this version of spikein.",
        )
    columns: dict[str, list[Any]] = {}
    lengths = table["log_probability"].combine_chunks().value_lengths().to_pylist()
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            columns[name] = column.to_pylist()
        else:
            metadata = table.schema.field(name).metadata or {}
            shape = tuple(json.loads(metadata.get(_SHAPE, b"[]")))
            columns[name] = _arrays(column, shape, lengths)
    return [_row(columns, at) for at in range(len(table))]


@cache
def _fields() -> tuple[_Field, ...]:
    hints = get_type_hints(TokenStatistics)
    found = []
    for field in dataclasses.fields(TokenStatistics):
        hint = hints[field.name]
        origin: Any = get_origin(hint)
        inner: type[Any] | None = None
        if origin is np.ndarray:
            kind = "array"
        elif isinstance(origin, type) and issubclass(origin, Mapping):
            kind, inner = "mapping", get_args(hint)[1]
        else:
            kind = "text"
        no_default = field.default is dataclasses.MISSING
        no_factory = field.default_factory is dataclasses.MISSING
        found.append(_Field(field.name, kind, inner, no_default and no_factory))
    return tuple(found)


def _lists(
    arrays: Sequence[npt.NDArray[Any]],
    kind: np.dtype[Any],
    shape: tuple[int, ...],
    hidden: npt.NDArray[np.bool_] | None,
) -> pa.Array:
    """Return arrays [N, …] as a column of flat lists, null where they are hidden."""
    none = np.zeros((0, *shape), kind)
    if hidden is not None:
        arrays = [none if gone else array for array, gone in zip(arrays, hidden, strict=True)]
    size = prod(shape)
    offsets = np.concatenate([[0], np.cumsum([len(array) * size for array in arrays])])
    values = np.concatenate([*arrays, none]).astype(kind).ravel()
    if offsets[-1] >= 2**31:
        raise InputError("the token statistics have more values than one column can hold")
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.array(values),
        mask=None if hidden is None else pa.array(hidden),
    )


def _arrays(
    column: pa.ListArray, shape: tuple[int, ...], lengths: Sequence[int]
) -> list[npt.NDArray[Any]]:
    """Return the arrays of a column; of -1 where it is null."""
    offsets = column.offsets.to_numpy()
    values = column.values.to_numpy()
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return [
        values[start:stop].reshape(-1, *shape)
        if there
        else np.full((length, *shape), -1, values.dtype)
        for (start, stop), there, length in zip(pairwise(offsets), valid, lengths, strict=True)
    ]


def _row(columns: Mapping[str, list[Any]], at: int) -> TokenStatistics:
    values: dict[str, Any] = {}
    for field in _fields():
        if field.inner is not None:
            found: dict[float, dict[str, Any]] = {}
            for name, arrays in columns.items():
                first, _, rest = name.partition(_SEPARATOR)
                if first == field.name and len(columns["log_probability"][at]):
                    key, _, inner = rest.partition(_SEPARATOR)
                    found.setdefault(float(key), {})[inner] = arrays[at]
            make: Callable[..., Any] = field.inner
            values[field.name] = {key: make(**inner) for key, inner in found.items()}
        elif field.name in columns:
            values[field.name] = columns[field.name][at]
    return TokenStatistics(**values)
