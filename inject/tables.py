"""Tables: Parquet and Arrow files whose errors name the file, and CSV that runs nowhere.

Arrow's own messages describe the problem with some bytes but do not name their file. A spreadsheet
takes a cell that begins with `=`, `+`, `@`, or `-` with something after it for a formula; ids and
names are other people's.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inject.errors import InputError
from inject.reading.former_names import with_current_columns

T = TypeVar("T")
_FORMULA = re.compile(r"[=+@\t\r]|-.", re.DOTALL)
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
"""Bytes of a value by its physical type in Parquet; a column of fixed length has its own."""
_COLUMNS = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_HINT = "If it is in the store, run again: damaged artifacts are rebuilt."


@contextmanager
def named_errors(path: Path, *, hint: str | None = _HINT) -> Iterator[None]:
    """Turn errors of Arrow, and of the file system, into one that names the file.

    Raises:
        InputError: instead of theirs.
    """
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError("is missing", where=str(path), hint=hint) from error
        first = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise InputError(f"cannot be read: {first}", where=str(path), hint=hint) from error


def read_parquet(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    repeated: Sequence[str] = (),
) -> pa.Table:
    """Return a Parquet file as a table.

    Args:
        path: the file.
        columns: those that are read; None for all.
        schema: the required columns; None for any columns.
        repeated: columns of few different texts, which are kept once each.

    Raises:
        InputError: naming the file, when it is missing, damaged, or of another schema.
    """
    with named_errors(path):
        table = pq.read_table(
            path,
            columns=None if columns is None else list(columns),
            schema=schema,
            read_dictionary=list(repeated) or None,
        )
    return with_current_columns(table, path)


def unpacked_bytes(path: Path, *, hint: str | None = _HINT) -> Iterator[int]:
    """Yield about the bytes that a Parquet file takes once read, part by part; no text is copied.

    Dictionary encoding repeats a text for next to no bytes in the file, so the sizes that the
    file itself states are not a bound. Cost: reading the texts.

    Raises:
        InputError: naming the file, if it is missing or damaged.
    """
    with named_errors(path, hint=hint):
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema, file.metadata
        columns = [schema.column(number) for number in range(metadata.num_columns)]
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            parts = [group.column(at) for at in range(len(columns))]
            yield max(
                sum(part.total_uncompressed_size for part in parts),
                sum(
                    part.num_values * max(_WIDTHS.get(part.physical_type, column.length), 1)
                    for part, column in zip(parts, columns, strict=True)
                ),
            )
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            # Nested texts of several row groups cannot be in one batch.
            for number in range(metadata.num_row_groups):
                for batch in file.iter_batches(row_groups=[number], columns=texts):
                    yield sum(map(_text_bytes, batch.columns))


def _text_bytes(array: pa.Array) -> int:
    """Return the bytes of all texts in a column whose texts are dictionary-encoded."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return pc.sum(lengths.take(array.indices)).as_py() or 0
    if pa.types.is_struct(array.type):
        return sum(map(_text_bytes, array.flatten()))
    return _text_bytes(array.flatten()) if pa.types.is_nested(array.type) else int(array.nbytes)


def write_compact(table: pa.Table, path: Path) -> None:
    """Write a Parquet file as small as it gets with every bit kept; 30 MB/s.

    Bytes of floats are split by their place, as signs and exponents repeat and the rest does not.
    """
    names = {field.name: field.type for field in table.schema}
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=9,
        use_dictionary=[name for name, kind in names.items() if pa.types.is_string(kind)],
        use_byte_stream_split=[
            leaf for name, kind in names.items() if (leaf := _leaf_of_floats(name, kind))
        ],
    )


def _leaf_of_floats(name: str, kind: pa.DataType) -> str:
    """Return Parquet's name for the column of floats in it; empty for other types."""
    while pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        name, kind = f"{name}.list.element", kind.value_type
    return name if pa.types.is_floating(kind) else ""


def write_records(
    path: Path, schema: pa.Schema, example_ids: Sequence[str], records: Sequence[Any]
) -> None:
    """Write one row per example, in order: its id, and a record's fields by their names.

    Args:
        path: the Parquet file.
        schema: `example_id`, then the fields that are written.
        example_ids: one for each record.
        records: objects with these fields.
    """
    rows = [
        {"example_id": example_id, **{name: getattr(record, name) for name in schema.names[1:]}}
        for example_id, record in zip(example_ids, records, strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def read_records(path: Path, schema: pa.Schema, make: Callable[..., T]) -> dict[str, T]:
    """Return the records that `write_records` wrote, by example id (rows of one id are equal).

    Args:
        path: the Parquet file.
        schema: that it was written with.
        make: makes a record of its fields; lists among them come as tuples.

    Raises:
        InputError: as `read_parquet`.
    """
    return {
        row.pop("example_id"): make(
            **{name: tuple(cell) if isinstance(cell, list) else cell for name, cell in row.items()}
        )
        for row in read_parquet(path, schema=schema).to_pylist()
    }


Write = Callable[[Path, Sequence[str], Sequence[T]], None]
"""Writes one row per example into a folder, in order: its id, and its values."""
Read = Callable[[Path], dict[str, T]]
"""Reads them back by example id (rows of one id are alike); raises as `read_parquet`."""


def record_table(name: str, record: type[T], *, unwritten: str = "") -> tuple[Write[T], Read[T]]:
    """Return the functions that write and read a record per example.

    Args:
        name: of the Parquet file.
        record: a class whose fields are texts, numbers and tuples of them, or absent.
        unwritten: the field that is not stored.
    """
    columns = [field for field in record_schema(record) if field.name != unwritten]
    schema = pa.schema([("example_id", pa.string()), *columns])

    def write(folder: Path, example_ids: Sequence[str], records: Sequence[T]) -> None:
        write_records(folder / name, schema, example_ids, records)

    def read(folder: Path) -> dict[str, T]:
        return read_records(folder / name, schema, record)

    return write, read


def part_table(name: str, part: type[T]) -> tuple[Write[Sequence[T]], Read[list[T]]]:
    """Return the functions that write and read the parts of each example's text.

    A field of the parts is a column of lists, its numbers in 32 bits. Rows whose parts a bundle
    withholds are not read.

    Args:
        name: of the Parquet file.
        part: a class whose fields are texts and numbers.
    """
    narrow = {pa.int64(): pa.int32(), pa.float64(): pa.float32()}
    columns = [
        (column.name, pa.list_(narrow.get(column.type, column.type)))
        for column in record_schema(part)
    ]
    schema = pa.schema([("example_id", pa.string()), *columns])

    def write(folder: Path, example_ids: Sequence[str], rows: Sequence[Sequence[T]]) -> None:
        lists = [
            SimpleNamespace(
                **{key: [getattr(record, key) for record in parts] for key, _ in columns}
            )
            for parts in rows
        ]
        write_records(folder / name, schema, example_ids, lists)

    def read(folder: Path) -> dict[str, list[T]]:
        lists = read_records(folder / name, schema, lambda **cells: tuple(cells.values()))
        return {
            example_id: [part(*values) for values in zip(*cells, strict=True)]
            for example_id, cells in lists.items()
            if None not in cells
        }

    return write, read


def record_schema(record: type[Any]) -> pa.Schema:
    """Return the columns of a class by the types of its fields: texts, numbers, tuples of them."""
    return pa.schema([(name, _column(hint)) for name, hint in get_type_hints(record).items()])


def _column(hint: Any) -> pa.DataType:
    inner = [argument for argument in get_args(hint) if argument not in (type(None), ...)]
    if get_origin(hint) is tuple:
        return pa.list_(_column(inner[0]))
    return _column(inner[0]) if inner else _COLUMNS[hint]


def csv_text(names: Sequence[str], rows: Iterable[Sequence[object]], *, end: str = "\r\n") -> str:
    """Return rows as CSV (RFC 4180), numbers as they are, never rounded; None and NaN are empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it, unless it is a
    number.

    Args:
        names: of the columns.
        rows: a value for each column.
        end: of a line.
    """
    lines: list[str] = []
    # Only with its own end of a line does the library quote every kind of line break in a cell.
    writer = csv.writer(SimpleNamespace(write=lines.append))
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return "".join(line.removesuffix("\r\n") + end for line in lines)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    text = repr(float(value)) if isinstance(value, float) else str(value)
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
