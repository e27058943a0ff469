"""From an experiment to its report.

A run builds every step of the graph that the store lacks, then publishes `runs/NAME/N/`. If
nothing has to be built, a run only reads the sources and renders the page.
"""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from analysis.studies.claims import claims_digest
from inject.errors import InputError
from spikein.api.experiment import AnyExperiment, Overrides, naming_missing_data, read
from spikein.executors import Executor, RunReport, executor_of, get_executor, run_graph
from spikein.executors.graph_run import InProcess
from spikein.executors.pools.local import Local, require_local_training, visible_gpus
from spikein.pipeline.build_graph import ExperimentGraph, build_graph
from spikein.pipeline.graph import plan
from spikein.progress import Progress, show_progress
from spikein.runs.claims import claims_design, fix_claims
from spikein.runs.folder import check_home
from spikein.runs.index_page import write_index
from spikein.runs.publication import publish_run, result_changes
from spikein.runs.publish import PAGE, fill_run
from spikein.runs.record import EXPERIMENT, RunRecord
from spikein.runs.register import register_run
from spikein.store.filesystem import (
    CHANGE_RUNS,
    CHANGE_STORE,
    RUNS_OPTION,
    STORE_OPTION,
    AnyPath,
    check_folder,
    check_writable,
    read_only,
    runs_folder,
    store_folder,
    writing,
)
from spikein.store.store import Store
from train.execution import ExecutionSettings, require_installed


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A finished run."""

    folder: Path
    """`runs/<name>/`."""
    report: Path
    """`report.html` in it."""
    summary: tuple[str, ...]
    """A few lines of plain text: the checks, the best detector, its trend with copies."""
    built: int
    """Steps that this run built."""
    stored: int
    """Steps that were in the store."""
    seconds: float


def run(
    experiment: AnyExperiment,
    *,
    overrides: Overrides = (),
    store: AnyPath | None = None,
    runs: AnyPath | None = None,
    executor: str | Executor | None = None,
    progress: bool | Progress = True,
) -> RunResult:
    """Run an experiment to its report.

    Steps whose result is in the store do not run again: an interrupted run resumes where it
    stopped, and a second run takes seconds.

    Args:
        experiment: an experiment file, a mapping of the same keys, or a checked experiment.
            Relative paths in it start at the working directory.
        overrides: values that replace those of the experiment, by dotted key:
            `{"train.lr": 1e-3}` or `["train.lr=1e-3"]`.
        store: the folder of artifacts; `$SPIKEIN_STORE`, else `store`, when None.
        runs: the folder of runs; `$SPIKEIN_RUNS`, else `runs`, when None.
        executor: where steps run, by name, or an executor of your own; None uses the experiment's
            `executor`, by default this process.
        progress: whether to report progress on standard error, or an object that receives it.

    Returns:
        The run's folder, its page, and the first sentences of the page.

    Raises:
        InputError: for a bad experiment or bad data; finished steps stay in the store.
        AuditFailed: when a contaminated stream does not match its plan.
        StepsFailed: when some steps failed; all others were finished.

    Example:
        ```python
        import spikein

        result = spikein.run("quickstart", overrides={"train.lr": 1e-3})
        for sentence in result.summary:
            print(sentence)
        run = spikein.load_run(result.folder)
        ```
    """
    if isinstance(progress, bool):
        with show_progress() if progress else nullcontext(Progress()) as display:
            return _run(experiment, overrides, store, runs, executor, display)
    return _run(experiment, overrides, store, runs, executor, progress)


def _run(
    experiment: AnyExperiment,
    overrides: Overrides,
    store_given: AnyPath | None,
    runs_given: AnyPath | None,
    choice: str | Executor | None,
    progress: Progress,
) -> RunResult:
    started = time.monotonic()
    store_root, runs_root = store_folder(store_given), runs_folder(runs_given)
    # An unknown name is refused before anything is read.
    executor = get_executor(choice) if isinstance(choice, str) else choice
    checked = read(experiment, overrides)
    name = checked.experiment.name
    if executor is None or choice == checked.experiment.executor.kind:
        executor = executor_of(checked.experiment.executor)
    # Before hours of training, not after.
    refused = _why_unwritable(store_root)
    check_writable(runs_root, RUNS_OPTION)
    check_home(runs_root / name)
    store = Store(store_root)
    with store.in_use(required=refused is None):
        with naming_missing_data(checked):
            experiment_graph = build_graph(checked)
        planned = [
            step_plan.step for step_plan in plan(experiment_graph.graph, store) if step_plan.to_do
        ]
        if refused and planned:
            raise refused
        nodes = experiment_graph.nodes
        for execution in dict.fromkeys(node.arm.experiment.training_runtime for node in nodes):
            require_installed(execution)
            if any(step.kind == "model" for step in planned):
                _announce_training(execution, executor, progress)
        trackers = checked.experiment.training_runtime.trackers
        if trackers:
            from spikein.runs.trackers import check_trackers, send_results

            check_trackers(trackers)
        for note in experiment_graph.short_notes:
            progress.notice(note)
        with writing(runs_root, CHANGE_RUNS, f"the claims of {name}"):
            claims = checked.experiment.claims
            fix_claims(runs_root / name, claims, claims_design(experiment_graph))
        report = run_graph(executor, experiment_graph.graph.complete(), store, progress)
        with writing(runs_root, CHANGE_RUNS, f"the run {name}"):
            result = publish(experiment_graph, report, store_root, runs_root / name, started)
    if trackers:
        for sentence in send_results(trackers, result.folder, result.report, store_root).values():
            progress.notice(sentence)
    return result


def _announce_training(
    execution: ExecutionSettings, executor: Executor, progress: Progress
) -> None:
    """Report how models are trained; check now what DeepSpeed needs on this machine's CPUs.

    Raises:
        InputError: as `require_local_training`.
    """
    progress.notice(f"Models are trained {execution.label()}.")
    if not isinstance(executor, InProcess | Local):
        return
    gpus = len(visible_gpus())
    if gpus > execution.processes:
        progress.notice(
            f"This machine has {gpus} GPUs, and a model is trained on {execution.processes}: "
            f"training_runtime.processes={gpus} takes all of them."
        )
    require_local_training(execution)


def _why_unwritable(store: Path) -> InputError | None:
    """Return why nothing can be built in a store; None if it can.

    Raises:
        InputError: for a path that is not a folder, or a folder without usable artifacts.
    """
    check_folder(store, STORE_OPTION)
    try:
        check_writable(store, STORE_OPTION)
    except InputError as error:
        if next(Store(store).artifacts(), None) is None:
            raise
        return error
    return None


def publish(
    experiment_graph: ExperimentGraph,
    report: RunReport,
    store_root: Path,
    home: Path,
    started: float,
    *,
    show_protected: bool = False,
) -> RunResult:
    """Fill and publish a run folder, register it in the store, and list it in `index.html`.

    Args:
        experiment_graph: the experiment and its steps.
        report: the outcomes of the steps.
        store_root: the folder of artifacts.
        home: the folder of the runs of this name.
        started: when the work began, by the monotonic clock.
        show_protected: show the texts of protected datasets in the page.
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
        claims=claims_digest(experiment_graph.experiment.claims, claims_design(experiment_graph)),
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
    """Register a run folder in the store; skip a store that cannot be written."""
    try:
        with writing(store, CHANGE_STORE, "the register of runs"):
            register_run(store, folder, id=record.id, artifacts=record.artifacts)
    except InputError as error:
        if not isinstance(error.__cause__, OSError) or not read_only(error.__cause__):
            raise
