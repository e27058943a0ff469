"""The tables in a run's folder: which must be there, and how one is read."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.findings import COLUMNS, FINDINGS_FILE
from analysis.selection.tuning import score_schema
from detect.scores.table import SCORES_FILE
from inject.errors import InputError
from inject.examples.example import EXAMPLES_FILE
from inject.examples.example import SCHEMA as EXAMPLES
from inject.reading.former_names import current_columns, rename_columns
from inject.stream.exposures import EXPOSURES_FILE
from inject.stream.exposures import SCHEMA as EXPOSURES
from inject.tables import read_parquet
from spikein.config.former_keys import current_key
from spikein.runs.record import EXPERIMENT

RUN_TABLES = {
    FINDINGS_FILE: frozenset(COLUMNS),
    SCORES_FILE: frozenset(score_schema([]).names),
    EXAMPLES_FILE: frozenset(EXAMPLES.names),
    EXPOSURES_FILE: frozenset(EXPOSURES.names),
}
"""The columns that this version reads from each table."""

RUN_AGAIN = "To write them again: spikein run {}"


def read_run_table(path: Path) -> pa.Table:
    """Return a table of a run, with a column for each swept axis.

    Raises:
        InputError: for a missing or damaged file.
    """
    table = read_parquet(path)
    return rename_columns(table, [current_key(name) for name in table.column_names])


def missing_parts(folder: Path) -> list[str]:
    """Return the files and columns that a run folder lacks.

    Raises:
        InputError: for a table that cannot be read.
    """
    lacks = [] if (folder / EXPERIMENT).is_file() else [EXPERIMENT]
    for name, columns in RUN_TABLES.items():
        path = folder / name
        if not path.is_file():
            lacks.append(name)
            continue
        try:
            present = current_columns(name, pq.read_schema(path).names)
        except (OSError, pa.ArrowInvalid) as error:
            hint = RUN_AGAIN.format(folder / EXPERIMENT)
            raise InputError(f"cannot be read: {error}", where=str(path), hint=hint) from None
        if lacking := sorted(columns - set(present)):
            lacks.append(f"columns of {name} ({', '.join(lacking)})")
    return lacks
