"""Base of the presets of published benchmarks."""

from collections.abc import Callable
from dataclasses import dataclass

from detect.user_rows.labelled_rows import LabelledRows, read_labelled
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A benchmark with given labels."""

    name: str
    summary: str
    source: str
    """Its publisher's location."""
    columns: str
    """Content of its rows."""
    warning: str
    """Basis of its labels."""
    read: Callable[[str, RowSettings], LabelledRows]
    """Reads and checks a file, a folder or a glob."""
    hub: str = ""
    """Id of its only data set on the hub, if its rows have one commit."""
    commit: str = ""
    """The beginning of that commit."""
    has_subsets: bool = False
    """Whether `subset` selects a part of it."""


def labelled(pattern: str, how: RowSettings, name: str) -> LabelledRows:
    """Return the rows of a benchmark.

    Raises:
        InputError: rows without labels; as `read_labelled`.
    """
    rows = read_labelled(pattern, how)
    if rows.labels is None:
        raise InputError(
            f"{name} has labels, and these rows have none",
            where=pattern,
            hint="label_column=NAME names their column.",
        )
    return rows
