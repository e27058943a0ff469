"""Reading tables that steps wrote: Parquet and Arrow files whose errors name the file.

Arrow's own messages say what is wrong with some bytes and not in which file they lie.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from inject.errors import InputError

_HINT = "If it lies in the store, run again: what is damaged is built anew."


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
        schema: what the file must hold; None for whatever it holds.
        repeated: columns of few different texts, which are kept once each.

    Raises:
        InputError: naming the file, when it is missing, damaged, or of another schema.
    """
    with named_errors(path):
        return pq.read_table(
            path,
            columns=None if columns is None else list(columns),
            schema=schema,
            read_dictionary=list(repeated) or None,
        )
