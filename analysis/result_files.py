"""The files of an experiment's results: six tables, and what was chosen and left out.

The run's folder holds copies of the tables under the same names.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
from pydantic import TypeAdapter

from analysis.compared_rows import UnscoredRows
from analysis.results import Analysis, CohortChoice
from detect.scores.table import SCORES_FILE
from inject.tables import read_parquet

METRICS_FILE = "metrics.parquet"
DIFFERENCES_FILE = "differences.parquet"
DATASETS_FILE = "dataset_detectors.parquet"
FLAGGED_FILE = "flagged.parquet"
FACTORS_FILE = "factors.parquet"
FINDINGS_FILE = "findings.json"
TABLE_FILES = (
    METRICS_FILE,
    DIFFERENCES_FILE,
    SCORES_FILE,
    DATASETS_FILE,
    FLAGGED_FILE,
    FACTORS_FILE,
)
"""The tables, see `analysis.results.Analysis`; the scores are those of the selected settings."""

_CHOICES = TypeAdapter(tuple[CohortChoice, ...])
_UNSCORED = TypeAdapter(tuple[UnscoredRows, ...])


def write_analysis(folder: Path, analysis: Analysis) -> None:
    """Write an analysis into a folder."""
    pq.write_table(analysis.metrics, folder / METRICS_FILE)
    pq.write_table(analysis.differences, folder / DIFFERENCES_FILE)
    pq.write_table(analysis.scores, folder / SCORES_FILE)
    pq.write_table(analysis.datasets, folder / DATASETS_FILE)
    pq.write_table(analysis.flagged, folder / FLAGGED_FILE)
    if analysis.factors is not None:
        pq.write_table(analysis.factors, folder / FACTORS_FILE)
    findings = {
        "choices": _CHOICES.dump_python(analysis.choices, mode="json"),
        "unscored": _UNSCORED.dump_python(analysis.unscored, mode="json"),
    }
    (folder / FINDINGS_FILE).write_text(json.dumps(findings, indent=1))


def read_analysis(folder: Path) -> Analysis:
    """Read what `write_analysis` wrote.

    Raises:
        InputError: naming the table that is missing or damaged.
    """
    findings = json.loads((folder / FINDINGS_FILE).read_text())
    return Analysis(
        metrics=read_parquet(folder / METRICS_FILE),
        differences=read_parquet(folder / DIFFERENCES_FILE),
        scores=read_parquet(folder / SCORES_FILE),
        datasets=read_parquet(folder / DATASETS_FILE),
        flagged=read_parquet(folder / FLAGGED_FILE),
        choices=_CHOICES.validate_python(findings["choices"]),
        unscored=_UNSCORED.validate_python(findings["unscored"]),
        factors=read_parquet(folder / FACTORS_FILE) if (folder / FACTORS_FILE).is_file() else None,
    )
