"""Running, planning and re-rendering an experiment: what the command line calls.

A run makes every step of the graph that the store lacks, then fills `runs/<name>/` and swaps
it in whole. A run of which nothing had to be built costs reading the sources and rendering
the page.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from inject.errors import InputError
from inject.reach import without_network
from inject.tokenizer import load_tokenizer
from spikein.assembly import Assembly, assemble
from spikein.estimates import Hardware, estimates
from spikein.executors import Executor, RunReport, get_executor
from spikein.graph import Planned, plan
from spikein.manifest import StoreError
from spikein.outlook import outlooks
from spikein.progress import Progress, Silent
from spikein.publishing import EXPERIMENT, fill_run
from spikein.reading import read_experiment
from spikein.results import PlanResult, PlanRow, RunResult
from spikein.runs import publish_run
from spikein.store import Store
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
    experiment = read_experiment(path, overrides)
    store = Store(store_root)
    with store.in_use():
        assembly = assemble(experiment)
        for node in assembly.nodes:
            require_installed(node.arm.experiment.execution)
        for note in assembly.notes:
            progress.notice(note)
        report = executor.run(assembly.graph.whole(), store, progress)
        return _publish(assembly, report, runs_root, started)


def plan_experiment(
    path: Path, overrides: list[str], *, store_root: Path, hardware: Hardware | None = None
) -> PlanResult:
    """Say what a run would do; builds nothing, and goes on where a hub cannot be reached.

    Args:
        path: the experiment file.
        overrides: `key=value` each.
        store_root: the folder of artifacts.
        hardware: the GPUs that training is estimated for.

    Raises:
        InputError: for a bad experiment, or a source that cannot be read.
    """
    with without_network() as notes:
        assembly = assemble(read_experiment(path, overrides))
    store = Store(store_root)
    rows = []
    for planned in plan(assembly.graph.whole(), store):
        cost = planned.step.cost
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
                seconds=cost.seconds if cost else None,
            )
        )
    injection = outlooks([node.arm for node in assembly.nodes], _tokenizer(assembly, store))
    return PlanResult(
        name=assembly.experiment.name,
        arms=len(assembly.nodes),
        rows=tuple(rows),
        injection=injection,
        training=estimates([node.arm for node in assembly.nodes], hardware or Hardware()),
        unresolved=notes,
        problems=tuple(dict.fromkeys(one.problem for one in injection if one.problem)),
    )


def _tokenizer(assembly: Assembly, store: Store) -> Any | None:
    """Return the experiment's tokenizer where it is in the store or on this disk already."""
    model = assembly.experiment.model
    named = model.tokenizer or model.pretrained
    stored = None
    with suppress(StoreError):
        stored = store.find(assembly.nodes[0].tokenizer.digest, kind="tokenizer", verify=True)
    if stored is not None:
        return load_tokenizer(str(stored.path))
    if isinstance(named, str) and Path(named).expanduser().is_dir():
        return load_tokenizer(named, trust_remote_code=model.trust_remote_code)
    return None


def render_report(folder: Path, *, store_root: Path, show_protected: bool = False) -> Path:
    """Render the page of a finished run again, from the store alone.

    Args:
        folder: the run's folder.
        store_root: the folder of artifacts.
        show_protected: show the texts of protected datasets in the page.

    Raises:
        InputError: when the store lacks a step of it, so that it would have to be run.
    """
    started = time.monotonic()
    store = Store(store_root)
    with store.in_use():
        assembly = assemble(read_experiment(folder / EXPERIMENT))
        planned = plan(assembly.graph, store)
        _require_whole(planned, folder)
        report = get_executor("in-process").run(assembly.graph, store, Silent())
        result = _publish(assembly, report, folder.parent, started, show_protected=show_protected)
        return result.report


def _require_whole(planned: Sequence[Planned], folder: Path) -> None:
    """Refuse where something that the page is made of is damaged or absent.

    Raises:
        InputError: naming the file, or the first step, and the command that mends it.
    """
    hint = f"Run it again: spikein run {folder / EXPERIMENT}"
    for one in planned:
        if one.problem is not None:
            raise InputError(one.problem.problem, where=one.problem.where, hint=hint)
    lacking = [one.step.name for one in planned if one.state not in ("stored", "unneeded")]
    if lacking:
        raise InputError(
            f"the store lacks {len(lacking)} of its steps (the first: {lacking[0]})",
            where=str(folder),
            hint=hint,
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
    assembly: Assembly,
    report: RunReport,
    runs_root: Path,
    started: float,
    *,
    show_protected: bool = False,
) -> RunResult:
    summary: list[str] = []
    folder = publish_run(
        runs_root,
        assembly.experiment.name,
        lambda hidden: summary.extend(
            fill_run(hidden, assembly, report, show_protected=show_protected)
        ),
    )
    return RunResult(
        folder=folder,
        report=folder / "report.html",
        summary=tuple(summary),
        built=report.built,
        stored=len(report.outcomes) - report.built,
        seconds=time.monotonic() - started,
    )
