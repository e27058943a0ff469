"""One step of a run, built by another process: of this machine, of a node, of a Slurm job.

The step's output goes into its log. Its end is returned, even after an exception; only a killed
process returns nothing.
"""

import os
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from inject.errors import SpikeinError
from inject.secrets import masked
from inject.step import Step
from spikein.executors import graph_run
from spikein.executors.graph_file import GraphFile, StoredGraph, read_graph, require_same_code
from spikein.executors.live_status import MARK, TaskFiles
from spikein.executors.protocol import Outcome
from spikein.progress import Progress
from spikein.store.artifact import Artifact
from spikein.store.store import Store

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""Variables that limit the threads of libraries."""
_REPOSITORY = Path(__file__).resolve().parents[2]
_PROGRESS_SECONDS = 0.5
_MOST_NOTICES = 20


@dataclass(frozen=True, kw_only=True)
class Task:
    """One step to be built, as plain values."""

    digest: str
    """Of the step."""
    graph: GraphFile
    threads: int
    """It may use."""
    attempt: int = 1


@dataclass(frozen=True, kw_only=True)
class TaskEnd:
    """The outcome of a step's task."""

    digest: str
    state: Literal["done", "failed", "lost"]
    """`lost`: the process ended without a result, or ended on request; the step may be retried."""
    built: bool = False
    seconds: float = 0.0
    problem: str = ""
    where: str = ""


def python_path() -> str:
    """Return the `PYTHONPATH` of a process that builds steps: this code, then the user's."""
    paths = [str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(path for path in paths if path)


def run_task(task: Task, worker: str = "") -> TaskEnd:
    """Build the step of a task; an exception is part of the result.

    Args:
        task: the step and its run.
        worker: the name of this place in addition to host and process, such as `worker 2`.
    """
    place = ", ".join(
        part for part in (worker, f"process {os.getpid()} on {socket.gethostname()}") if part
    )
    files = TaskFiles(task.graph.folder, task.digest)
    files.clear()
    progress = _FileProgress(files, place)
    with _output_to(files.log):
        print(f"{MARK}attempt {task.attempt}: {place}, {time.strftime('%Y-%m-%d %H:%M:%S %Z')}")
        end = _build_step(task, progress, place)
        print(f"{MARK}{end.state} after {end.seconds:.1f} s", flush=True)
    return end


def _build_step(task: Task, progress: "_FileProgress", place: str) -> TaskEnd:
    from train.processes.preemption import Preempted

    started = time.monotonic()

    def ended(state: Literal["done", "failed", "lost"], problem: str, built: bool) -> TaskEnd:
        return TaskEnd(
            digest=task.digest,
            state=state,
            built=built,
            seconds=time.monotonic() - started,
            problem=problem,
            where=place,
        )

    try:
        graph = read_graph(task.graph)
        outcome = build_stored(graph, graph.steps[task.digest], progress, threads=task.threads)
    except Preempted as error:
        return ended("lost", str(error), False)
    except SpikeinError as error:
        print(error, file=sys.stderr)
        return ended("failed", masked(str(error)), False)
    except Exception as error:
        traceback.print_exception(type(error), error, _within_step(error.__traceback__))
        return ended("failed", masked(f"{type(error).__name__}: {error}"), False)
    return ended("done", "", outcome.built)


def build_stored(graph: StoredGraph, step: Step, progress: Progress, *, threads: int) -> Outcome:
    """Build one step of a graph in the graph's store, unless it is stored.

    Args:
        graph: the graph of the run.
        step: a step of the graph.
        progress: receives the events of the step.
        threads: the number of threads that the step may use.

    Raises:
        SpikeinError: when code or libraries here differ, or an input is not in the store.
        Exception: as the step raises, with a note that names it.
    """
    os.chdir(graph.working_folder)
    require_same_code(step)
    store = _open_store(graph.store)
    with store.in_use(required=False), _threads_for(step, threads):
        return graph_run.build_step(step, _inputs(step, store), store, progress)


@lru_cache(maxsize=2)
def _open_store(root: str) -> Store:
    """Return a store; one object per process, which reads each manifest once."""
    return Store(Path(root))


def _within_step(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback inside the step itself, if there is one."""
    part, frame = trace, trace
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == graph_run.__file__ and frame.tb_next is not None:
            part = frame.tb_next
        frame = frame.tb_next
    return part


def _inputs(step: Step, store: Store) -> dict[str, Artifact]:
    artifacts = {}
    for name, source in step.inputs.items():
        artifact = store.find(source.digest, kind=source.kind)
        if artifact is None:
            raise SpikeinError(f"the input {name} ({source.name}) is not in the store {store.root}")
        artifacts[name] = artifact
    return artifacts


@contextmanager
def _threads_for(step: Step, threads: int) -> Iterator[None]:
    """Divide the threads among the training processes that a step starts."""
    if step.processes == 1:
        yield
        return
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(max(threads // step.processes, 1))
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Append all output of this process and its children to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    before = os.dup(1), os.dup(2)
    with log.open("a", encoding="utf-8", errors="replace", buffering=1) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            # Clusters replace Python's streams by their own.
            with redirect_stdout(file), redirect_stderr(file):
                yield
        finally:
            for target, saved in zip((1, 2), before, strict=True):
                os.dup2(saved, target)
                os.close(saved)


class _FileProgress(Progress):
    """Write a step's progress to a file of its run, and its notices into its log."""

    def __init__(self, files: TaskFiles, place: str) -> None:
        self._files = files
        self._facts: dict[str, Any] = {"where": place, "began": time.time()}
        self._written = 0.0
        files.write_progress(**self._facts)

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Write the progress, at most twice a second."""
        now = time.monotonic()
        if now - self._written >= _PROGRESS_SECONDS:
            self._written = now
            self._facts |= {"done": done, "total": total, "unit": unit, "note": note}
            self._files.write_progress(**self._facts)

    def notice(self, text: str) -> None:
        """Write the text into the log, and for the waiting run."""
        print(text, flush=True)
        self._facts["notices"] = [*self._facts.get("notices", ()), masked(text)][-_MOST_NOTICES:]
        self._files.write_progress(**self._facts)
