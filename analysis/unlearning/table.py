"""From the folders of an experiment's models to the two tables of unlearning.

One pass over the cohorts (arms that differ only in their seed); at any time the numbers of one are
in memory. Cost: 3 seeds of 200 examples, 7 models and 20 detectors take about ten seconds.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.copy_bins import CopiesCell, copies_cells, is_dose
from analysis.unlearning.auc_measures import write_auc_measures
from analysis.unlearning.evidence import ArmEvidence, Cohort, cohorts_of, load_cohort
from analysis.unlearning.forget_quality import write_forget_quality
from analysis.unlearning.relearning import write_relearning
from analysis.unlearning.rows import RowWriter, measures_schema
from analysis.unlearning.settings import MeasureSettings
from analysis.unlearning.text_measures import write_general_measures, write_text_measures
from analysis.unlearning.verdict import verdict_rows, verdict_schema
from inject.files import replacing
from inject.tables import read_parquet

MEASURES_FILE = "unlearning.parquet"
VERDICT_FILE = "verdict.parquet"


class UnlearningTables(NamedTuple):
    """What the models' scores and statistics say of unlearning."""

    measures: pa.Table
    """One row a measured value: swept axes, model, method, dataset, copies, measure, detector,
    setting, value, low, high, forget, holdout (rows, both summed over seeds), groups, seeds,
    note."""
    verdict: pa.Table
    """One row a method and declared measure, and one (`all`) with the verdict in words."""


def measure_unlearning(
    arms: Sequence[ArmEvidence],
    settings: MeasureSettings,
    *,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> UnlearningTables:
    """Measure every model of every arm.

    Args:
        arms: of all axes and seeds.
        settings: margins and tests.
        confidence: coverage asked of every interval.
        progress: called with how many of all cohorts are done.

    Raises:
        InputError: from `load_cohort` and `cohorts_of`.
    """
    axes = list(dict.fromkeys(key for arm in arms for key in arm.axes))
    measures, verdicts = [], []
    every = cohorts_of(arms)
    for done, same in enumerate(every):
        if progress is not None:
            progress(done, len(every))
        cohort = load_cohort(same)
        writer = RowWriter(cohort=cohort, cells=_cells(cohort), confidence=confidence)
        write_auc_measures(writer, settings)
        write_text_measures(writer)
        write_general_measures(writer)
        write_forget_quality(writer, settings)
        write_relearning(writer)
        measures += writer.rows
        verdicts += verdict_rows(cohort, settings, confidence=confidence)
    return UnlearningTables(
        pa.Table.from_pylist(measures, schema=measures_schema(axes)),
        pa.Table.from_pylist(verdicts, schema=verdict_schema(axes)),
    )


def write_tables(folder: Path, tables: UnlearningTables) -> None:
    """Write both tables into a folder, each whole or not at all."""
    for name, table in ((MEASURES_FILE, tables.measures), (VERDICT_FILE, tables.verdict)):
        with replacing(folder / name) as temporary:
            pq.write_table(table, temporary)


def read_tables(folder: Path) -> UnlearningTables:
    """Read what `write_tables` wrote.

    Raises:
        InputError: naming the file that is missing or damaged.
    """
    return UnlearningTables(
        read_parquet(folder / MEASURES_FILE), read_parquet(folder / VERDICT_FILE)
    )


def _cells(cohort: Cohort) -> list[CopiesCell]:
    """Return the numbers of copies of the forget set: all, then each number or bin of numbers."""
    counts = [count for rows in cohort.rows for count in rows.copies[rows.forget].tolist()]
    found = copies_cells(counts, high_copies=1 << 62)
    return [cell for at, cell in enumerate(found) if at == 0 or is_dose(cell.label)]
