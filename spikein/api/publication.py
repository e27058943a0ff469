"""The run folder at the end of a run, and of a page that is made again: filled, then published."""

import time
from functools import partial
from pathlib import Path

from inject.errors import InputError
from spikein.api.results import RunResult
from spikein.executors import RunReport
from spikein.pipeline.build_graph import ExperimentGraph
from spikein.runs.changes import result_changes
from spikein.runs.index_page import write_index
from spikein.runs.publication import publish_run
from spikein.runs.publish import PAGE, fill_run
from spikein.runs.record import EXPERIMENT, RunRecord
from spikein.runs.register import register_run
from spikein.store.filesystem import CHANGE_STORE, read_only, writing


def publish(
    experiment_graph: ExperimentGraph,
    report: RunReport,
    store_root: Path,
    home: Path,
    started: float,
    *,
    show_protected: bool = False,
) -> RunResult:
    """Fill and publish a run folder, let the store know of it, and list it in `index.html`.

    Args:
        experiment_graph: the experiment and its steps.
        report: what became of the steps.
        store_root: the folder of artifacts.
        home: the folder of the runs of this name.
        started: when the work began, by the monotonic clock.
        show_protected: let the page show the texts of protected datasets.
    """
    summary: list[str] = []
    published = publish_run(
        home.parent,
        home.name,
        lambda hidden: summary.extend(
            fill_run(hidden, experiment_graph, report, show_protected=show_protected)
        ),
        built=report.built > 0,
        announce=partial(_register, store_root),
    )
    write_index(home.parent)
    return RunResult(
        folder=published.folder,
        report=published.folder / PAGE,
        summary=(*summary, *result_changes(published, EXPERIMENT)),
        built=report.built,
        stored=len(report.outcomes) - report.built,
        seconds=time.monotonic() - started,
    )


def _register(store: Path, folder: Path, record: RunRecord) -> None:
    """Let the store know of a run folder; one that cannot be written loses nothing either."""
    try:
        with writing(store, CHANGE_STORE, "the register of runs"):
            register_run(store, folder, id=record.id, artifacts=record.artifacts)
    except InputError as error:
        if not isinstance(error.__cause__, OSError) or not read_only(error.__cause__):
            raise
