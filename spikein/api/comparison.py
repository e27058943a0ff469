"""Compare two finished runs: their differences, and those of their numbers."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analysis.comparison.metrics import ComparedMetrics, RunTables, compare_metrics
from analysis.settings import AnalysisSettings
from inject.errors import InputError
from inject.files import write_text
from spikein.api.finished_run import Run, load_run
from spikein.config.sweep import find_value, short_label, validate
from spikein.config.yaml_document import parse_path
from spikein.runs.comparison.origins import Origins, compare_origins
from spikein.runs.folder import run_name
from spikein.store.filesystem import AnyPath


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """Two compared runs; differences are the second minus the first."""

    first: Run
    second: Run
    names: tuple[str, str]
    """Names of the runs; their folders if the names are equal."""
    origins: Origins
    metrics: ComparedMetrics
    settings: AnalysisSettings
    """Those of the first run: the confidence of the intervals."""


def compare_runs(first: AnyPath, second: AnyPath, *, runs: AnyPath | None = None) -> RunComparison:
    """Compare two finished runs from their folders.

    Args:
        first: a run's name or folder.
        second: another.
        runs: the folder of runs that names are looked up in.

    Raises:
        InputError: when one is not a run, both are the same, or a table cannot be read.
    """
    finished = [load_run(run, runs=runs) for run in (first, second)]
    earlier, later = finished
    if earlier.folder.resolve() == later.folder.resolve():
        raise InputError(
            "is compared with itself",
            where=str(earlier.folder),
            hint="Give two runs; those of one name are NAME/1, NAME/2 and so on.",
        )
    names = (run_name(earlier.folder), run_name(later.folder))
    if names[0] == names[1]:
        names = (str(earlier.folder), str(later.folder))
    settings = AnalysisSettings.model_validate(dict(earlier.settings.get("analysis") or {}))
    return RunComparison(
        first=earlier,
        second=later,
        names=names,
        origins=compare_origins(earlier.folder, later.folder),
        metrics=compare_metrics(
            _tables(earlier, names[0], later.axes), _tables(later, names[1], earlier.axes), settings
        ),
        settings=settings,
    )


def _tables(run: Run, name: str, axes: Sequence[str]) -> RunTables:
    fixed = {}
    # An experiment of an earlier version, or without such a part.
    with suppress(ValueError, LookupError, AttributeError):
        experiment = validate(run.settings)
        fixed = {
            axis: short_label(find_value(experiment, parse_path(axis)))
            for axis in axes
            if axis not in run.axes
        }
    return RunTables(
        name=name,
        axes=run.axes,
        metrics=run.metrics,
        scores=run.scores,
        examples=run.examples,
        exposures=run.exposures,
        fixed=fixed,
    )


def write_comparison(path: Path, comparison: RunComparison) -> Path:
    """Write the page of a comparison to a file, whole or not at all; return its path."""
    from spikein.runs.comparison.page import comparison_page

    write_text(path, comparison_page(comparison.names, comparison.origins, comparison.metrics))
    return path
