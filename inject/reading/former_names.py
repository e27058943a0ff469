"""Names of version 0.1 that version 0.2 still reads: columns of tables, and the notes on them.

Version 0.3 removes this module, `spikein.config.former_keys` and the hidden options of the command
line.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

_STATISTICS = {"mean": "mean_log_prob", "deviation": "std_log_prob"}
FORMER_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "statistics.arrow": _STATISTICS,
    "statistics.parquet": _STATISTICS,
    "models.parquet": {"words": "label"},
    "findings.parquet": {
        "alone_low": "pointwise_low",
        "alone_high": "pointwise_high",
        "moment": "phase",
        "since": "steps_since_copy",
        "since_low": "steps_since_copy_low",
        "since_high": "steps_since_copy_high",
        "tokens_since": "tokens_since_copy",
    },
}
"""File name to former and current columns; `mean@0.5` is `mean` at one inverse temperature."""

Rows = TypeVar("Rows", "pa.Table", "pa.RecordBatch")


class FormerNameWarning(FutureWarning):
    """A name that the next version no longer reads."""


def note_former_name(place: str, former: str, current: str) -> None:
    """Warn about a former name.

    Args:
        place: its file, with the line if there is one.
        former: the name as it is written.
        current: the name to use.
    """
    text = f"{place}: {former} is now called {current}; spikein 0.3 will not read the former name."
    warnings.warn(text, FormerNameWarning, stacklevel=2)


def current_columns(file: str, names: Sequence[str]) -> list[str]:
    """Return the current names of a file's columns.

    Args:
        file: its name, without a folder.
        names: its columns.
    """
    former = FORMER_COLUMNS.get(file, {})
    return [_current(name, former) for name in names]


def _current(name: str, former: Mapping[str, str]) -> str:
    statistic, at, rest = name.partition("@")
    return f"{former.get(statistic, statistic)}{at}{rest}"


def with_current_columns(rows: Rows, path: Path) -> Rows:
    """Return rows under the current names of their columns; a note lists the former ones.

    Args:
        rows: as they were read.
        path: the file.
    """
    former = rows.schema.names
    current = current_columns(path.name, former)
    if current == former:
        return rows
    changed = [(old, new) for old, new in zip(former, current, strict=True) if old != new]
    note_former_name(
        str(path), ", ".join(old for old, _ in changed), ", ".join(new for _, new in changed)
    )
    return rename_columns(rows, current)


def rename_columns(rows: Rows, names: list[str]) -> Rows:
    """Return rows with other names of columns and the same metadata, which Arrow would drop."""
    return rows.rename_columns(names).replace_schema_metadata(rows.schema.metadata)
