"""Running, planning and re-rendering an experiment: what the command line calls.

A run makes every step of the graph that the store lacks, then fills `runs/<name>/` and swaps
it in whole. A run of which nothing had to be built costs reading the sources and rendering
the page.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from inject.corpus.tokenizer import load_tokenizer
from inject.errors import InputError
from inject.files import write_text
from inject.hub.offline import without_network
from spikein.config.load import read_experiment
from spikein.estimates.injection import injection_estimates
from spikein.estimates.step_times import measured_rate, step_seconds
from spikein.estimates.training import Hardware, training_estimates
from spikein.executors import Executor, RunReport, get_executor
from spikein.pipeline.build_graph import ExperimentGraph, build_graph
from spikein.pipeline.graph import Planned, plan
from spikein.progress import Progress, Silent
from spikein.results import PlanResult, PlanRow, RunResult
from spikein.runs.changes import result_changes
from spikein.runs.folder import check_replaceable, start_folder, store_of
from spikein.runs.publish import EXPERIMENT, PAGE, fill_run
from spikein.runs.record import RunRecord, read_record
from spikein.runs.register import register_run
from spikein.runs.replacement import publish_run
from spikein.store.folder_check import (
    CHANGE_RUNS,
    CHANGE_STORE,
    RUNS_OPTION,
    STORE_OPTION,
    check_folder,
    check_writable,
    read_only,
    writing,
)
from spikein.store.manifest import StoreError
from spikein.store.store import Store
from train.execution import require_installed


def run_experiment(
    path: Path,
    overrides: list[str],
    *,
    store_root: Path,
    runs_root: Path,
    executor: Executor,
    progress: Progress,
) -> RunResult:
    """Run an experiment file to its report.

    Args:
        path: the experiment file.
        overrides: `key=value` each.
        store_root: the folder of artifacts.
        runs_root: the folder of runs.
        executor: where steps run.
        progress: told how far it is.

    Raises:
        InputError: for a bad experiment or bad data; what was finished stays in the store.
        AuditFailed: when a contaminated stream is not what its plan says.
    """
    started = time.monotonic()
    checked = read_experiment(path, overrides)
    name = checked.experiment.name
    # Before hours of training, not after.
    check_writable(store_root, STORE_OPTION)
    check_writable(runs_root, RUNS_OPTION)
    check_replaceable(runs_root / name)
    store = Store(store_root)
    with store.in_use():
        experiment_graph = build_graph(checked)
        for node in experiment_graph.nodes:
            require_installed(node.arm.experiment.execution)
        for note in experiment_graph.notes:
            progress.notice(note)
        report = executor.run(experiment_graph.graph.whole(), store, progress)
        folder = runs_root / name
        with writing(runs_root, CHANGE_RUNS, f"the run {folder.name}"):
            return _publish(experiment_graph, report, store_root, folder, started)


def plan_experiment(
    path: Path,
    overrides: list[str],
    *,
    store_root: Path,
    hardware: Hardware | None = None,
    measure: bool = False,
) -> PlanResult:
    """Say what a run would do; builds nothing, and goes on where a hub cannot be reached.

    Args:
        path: the experiment file.
        overrides: `key=value` each.
        store_root: the folder of artifacts.
        hardware: the GPUs that training is estimated for.
        measure: time a few training steps on this machine, to say how long steps will take.

    Raises:
        InputError: for a bad experiment, or a source that cannot be read.
    """
    check_folder(store_root, STORE_OPTION)
    with without_network() as notes:
        experiment_graph = build_graph(read_experiment(path, overrides))
    store = Store(store_root)
    every = [node.arm for node in experiment_graph.nodes]
    injection = injection_estimates(every, _tokenizer(experiment_graph, store))
    steps = plan(experiment_graph.graph.whole(), store)
    measured = measured_rate(every) if measure and any(one.to_do for one in steps) else None
    rows = []
    for planned in steps:
        cost = planned.step.cost
        seconds = cost.seconds if cost else None
        if measured is not None and seconds is None:
            seconds = step_seconds(
                planned.step,
                sizes=measured[0],
                rate=measured[1],
                injection=injection,
                context=every[0].experiment.train.context,
            )
        rows.append(
            PlanRow(
                kind=planned.step.kind,
                label=planned.step.label,
                stored=not planned.to_do,
                state=_state(planned),
                problem=None
                if planned.problem is None
                else f"{planned.problem.where} {planned.problem.problem}",
                tokens=cost.tokens if cost else None,
                flops=cost.flops if cost else None,
                memory_bytes=cost.memory_bytes if cost else None,
                disk_bytes=cost.disk_bytes if cost else None,
                seconds=seconds,
            )
        )
    return PlanResult(
        name=experiment_graph.experiment.name,
        notes=experiment_graph.notes,
        arms=len(experiment_graph.nodes),
        rows=tuple(rows),
        injection=injection,
        training=training_estimates(every, hardware or Hardware()),
        measured=None if measured is None else measured[1],
        unresolved=notes,
        problems=tuple(dict.fromkeys(one.problem for one in injection if one.problem)),
    )


def _tokenizer(experiment_graph: ExperimentGraph, store: Store) -> Any | None:
    """Return the experiment's tokenizer where it is in the store or on this disk already."""
    model = experiment_graph.experiment.model
    named = model.tokenizer or model.pretrained
    stored = None
    with suppress(StoreError):
        stored = store.find(
            experiment_graph.nodes[0].tokenizer.digest, kind="tokenizer", verify=True
        )
    if stored is not None:
        return load_tokenizer(str(stored.path))
    if isinstance(named, str) and Path(named).expanduser().is_dir():
        return load_tokenizer(named, trust_remote_code=model.trust_remote_code)
    return None


def render_report(
    folder: Path,
    *,
    store_root: Path | None = None,
    show_protected: bool = False,
    out: Path | None = None,
) -> Path:
    """Render the page of a finished run again, from the store alone.

    Args:
        folder: the run's folder.
        store_root: the folder of artifacts; None for the one that the run remembers.
        show_protected: show the texts of protected datasets in the page.
        out: a file for the page; None puts it into the run's folder.

    Returns:
        The page.

    Raises:
        InputError: when the store is not found, or lacks a step of it, so that it would have to
            be run.
    """
    started = time.monotonic()
    folder, begun = Path(os.path.abspath(folder)), start_folder(folder)
    out = None if out is None else Path(os.path.abspath(out))
    root = store_root or store_of(folder)
    if root is None:
        raise InputError(
            "the store that the run was made from is not found",
            where=str(folder),
            hint=f"Give its folder by {STORE_OPTION}.",
        )
    check_folder(root, STORE_OPTION)
    if not root.is_dir():
        raise InputError(
            "there is no such folder, so no store either",
            where=str(root),
            hint=f"Give the folder of the run's store by {STORE_OPTION}.",
        )
    store = Store(root.absolute())
    with store.in_use(required=False), _inside(begun, folder):
        experiment_graph = build_graph(read_experiment(folder / EXPERIMENT))
        planned = plan(experiment_graph.graph, store)
        _require_whole(planned, store, folder, begun)
        report = get_executor("in-process").run(experiment_graph.graph, store, Silent())
        if out is not None:
            return _page_alone(experiment_graph, report, out, show_protected)
        with writing(folder.parent, "Give a file for the page by --out.", "the run's page"):
            return _publish(
                experiment_graph, report, store.root, folder, started, show_protected=show_protected
            ).report


@contextmanager
def _inside(begun: Path, folder: Path) -> Iterator[None]:
    """Work in the folder that a run was started from: paths in its experiment are relative to it.

    Raises:
        InputError: when it is gone.
    """
    if not begun.is_dir():
        raise InputError(
            f"the folder that the run was started from is gone: {begun}",
            where=str(folder),
            hint="Its data must be there to be checked; put it back, or run the experiment again.",
        )
    with chdir(begun):
        try:
            yield
        except InputError as error:
            record = read_record(folder)
            if record is not None and not Path(record.started_in.absolute).is_dir():
                error.add_note(
                    f"The run was started in {record.started_in.absolute}, which is gone; paths "
                    f"were looked up in {begun}."
                )
            raise


def _page_alone(
    experiment_graph: ExperimentGraph, report: RunReport, out: Path, show_protected: bool
) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        fill_run(Path(folder), experiment_graph, report, show_protected=show_protected)
        with writing(out.parent, "Give another file by --out.", "the page"):
            write_text(out, (Path(folder) / PAGE).read_text(encoding="utf-8"))
    return out


def _require_whole(planned: Sequence[Planned], store: Store, folder: Path, begun: Path) -> None:
    """Refuse where something that the page is made of is damaged or absent.

    Raises:
        InputError: naming the file, or the first step, and the command that mends it.
    """
    again = f"spikein run {folder / EXPERIMENT} (in {begun})"
    for one in planned:
        if one.problem is not None:
            raise InputError(
                one.problem.problem, where=one.problem.where, hint=f"Run it again: {again}"
            )
    lacking = [one.step.name for one in planned if one.state not in ("stored", "unneeded")]
    if lacking:
        raise InputError(
            f"the store {store.root} lacks {len(lacking)} of the steps that its experiment asks "
            f"for now (the first: {lacking[0]}): artifacts were removed, or data, libraries or "
            "the code of spikein changed since",
            where=str(folder),
            hint=f"The page as it was made is {folder / PAGE}. To make it anew: {again}",
        )


def _state(planned: Planned) -> str:
    """Return what `spikein plan` says of a step."""
    said = {
        "stored": "in the store",
        "same": "in the store under another name",
        "damaged": "damaged, will be rebuilt",
        "maybe": "to do, unless its inputs stay equal",
    }
    return said.get(planned.state, "to do")


def _publish(
    experiment_graph: ExperimentGraph,
    report: RunReport,
    store_root: Path,
    folder: Path,
    started: float,
    *,
    show_protected: bool = False,
) -> RunResult:
    summary: list[str] = []
    published = publish_run(
        folder.parent,
        folder.name,
        lambda hidden: summary.extend(
            fill_run(hidden, experiment_graph, report, show_protected=show_protected)
        ),
        built=report.built > 0,
        announce=partial(_register, store_root),
    )
    return RunResult(
        folder=folder,
        report=folder / PAGE,
        summary=(*summary, *result_changes(published, EXPERIMENT)),
        built=report.built,
        stored=len(report.outcomes) - report.built,
        seconds=time.monotonic() - started,
    )


def _register(store: Path, folder: Path, record: RunRecord, artifacts: frozenset[str]) -> None:
    """Let the store know of a run folder; one that cannot be written loses nothing either."""
    try:
        with writing(store, CHANGE_STORE, "the register of runs"):
            register_run(store, folder, id=record.id, artifacts=artifacts)
    except InputError as error:
        if not isinstance(error.__cause__, OSError) or not read_only(error.__cause__):
            raise
