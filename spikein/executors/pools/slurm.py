"""Steps as jobs of a Slurm cluster, submitted by submitit, many of one kind as one array.

All machines share the folder of the store and the Python environment. The state of jobs comes from
`squeue`, so no accounting database is needed; the end of a step comes from a file that its job
wrote. Jobs outlive this process when it is killed: a restarted run finds the steps that they
finished, and waits for those that they still build. Ctrl-C cancels them. Install submitit with
`pip install 'spikein[slurm]'`.

Before its time is over, or when it has to make room, Slurm warns a job by a signal. A training step
then writes a restart checkpoint, and the job returns to the queue and resumes from there. Other
steps start again in the next job, a few times.
"""

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from inject.errors import InputError
from inject.step import Step
from spikein.config.executor_settings import SlurmSettings, StepRequest, job_minutes
from spikein.executors.graph_file import write_graph
from spikein.executors.graph_run import GraphRun
from spikein.executors.live_status import TaskFiles
from spikein.executors.scheduling import SideBySide, require_known_kinds
from spikein.executors.task import THREAD_VARIABLES, Task, TaskEnd, python_path, run_task
from spikein.pipeline.graph import Graph

WARNING = signal.SIGUSR2
"""The signal that Slurm uses as a warning."""
_REQUEUE_SECONDS = 120
LOOK_SECONDS = 3.0
"""Between two calls of `squeue`."""
_COMMAND_SECONDS = 120
_STOP_SECONDS = 60.0
_MOST_JOBS = 10_000
_ALIVE = {
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_FED",
    "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT",
    "STOPPED",
}  # fmt: skip


class Slurm(SideBySide):
    """Jobs of a Slurm cluster, submitted by submitit; machines share the store's folder."""

    def __init__(self, settings: SlurmSettings | None = None) -> None:
        self.settings: SlurmSettings = settings or SlurmSettings()

    def require(self, graph: Graph) -> None:
        """Check that jobs can be submitted from here, and that all kinds with requests exist."""
        _require_slurm()
        require_known_kinds(self.settings, graph)

    def pool(self, run: GraphRun) -> "_Jobs":
        """Return the jobs of a run."""
        return _Jobs(run, self.settings)


class _Queued(NamedTuple):
    """The state of a job in `squeue`."""

    state: str
    reason: str
    machine: str


class _Jobs:
    """The pool of `spikein.executors.scheduling`, out of Slurm jobs."""

    def __init__(self, run: GraphRun, settings: SlurmSettings) -> None:
        self._settings = settings
        self._graph = write_graph(run.graph, run.store, run.status.folder)
        self._status = run.status
        open_folder = writable_by_others(self._graph.folder)
        if open_folder is not None:
            run.progress.notice(
                f"others of this machine may write {open_folder}, and so replace what the jobs of "
                "this run load; take a store that only you can write"
            )
        self._jobs: dict[str, str] = {}
        """The digests of steps to the ids of their jobs."""
        self._gone: dict[str, int] = {}
        self._looked_at = 0.0

    def room(self) -> int:
        """Return the number of further jobs that may be submitted."""
        return _MOST_JOBS - len(self._jobs)

    def begin(self, steps: Sequence[tuple[Step, int]]) -> None:
        """Submit a job for each step; steps with equal requests share an array."""

        def request(attempt: tuple[Step, int]) -> StepRequest:
            return self._settings.request(attempt[0].kind)

        for resources, group in groupby(
            sorted(steps, key=lambda attempt: repr(request(attempt))), key=request
        ):
            self._submit(resources, list(group))

    def wait(self, seconds: float) -> Iterable[TaskEnd]:
        """Return the steps that ended."""
        deadline = time.monotonic() + seconds
        while not (ends := self._collect_ends()) and time.monotonic() < deadline:
            time.sleep(min(0.2, seconds))
        return ends

    def close(self, *, stop: bool) -> None:
        """Leave the jobs; with `stop`, cancel them and wait until they are gone."""
        if not stop or not self._jobs:
            return
        ids = [*self._jobs.values()]
        _run(["scancel", *ids])
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            queue = _queue(ids)
            if queue is not None and not any(job.state in _ALIVE for job in queue.values()):
                return
            time.sleep(1.0)

    def _submit(self, request: StepRequest, steps: Sequence[tuple[Step, int]]) -> None:
        from submitit import SlurmExecutor
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        executor = SlurmExecutor(
            folder=self._graph.folder / "slurm",
            python=shlex.quote(sys.executable),
        )
        executor.update_parameters(**job_parameters(self._settings, request))
        works = []
        for step, attempt in steps:
            self._files(step.digest).clear()
            threads = request.cpus or 1
            task = Task(digest=step.digest, graph=self._graph, threads=threads, attempt=attempt)
            works.append(SlurmJob(task=task, attempts=self._settings.attempts))
        try:
            with executor.batch():
                jobs = [executor.submit(work) for work in works]
        except (FailedJobError, FailedSubmissionError) as error:
            raise InputError(
                f"Slurm refuses the job of {steps[0][0].name}: {str(error).strip()[-600:]}",
                where="executor",
                hint="Compare partition, account, time and the steps' requests with `sinfo`.",
            ) from error
        for (step, _), job in zip(steps, jobs, strict=True):
            self._jobs[step.digest] = job.job_id
            self._status.set(step.digest, where=f"Slurm job {job.job_id}, submitted")

    def _collect_ends(self) -> list[TaskEnd]:
        """Return the ended steps, by their own report or by the state of their job."""
        ends = []
        for digest in self._jobs:
            record = self._files(digest).end()
            if record is not None:
                ends.append(TaskEnd(**record))
        if time.monotonic() - self._looked_at >= LOOK_SECONDS and self._jobs:
            self._looked_at = time.monotonic()
            said_already = {end.digest for end in ends}
            queue = _queue([*self._jobs.values()])
            for digest, job in self._jobs.items():
                if queue is None or digest in said_already:
                    continue
                end = self._judge(digest, job, queue.get(job))
                if end is not None:
                    ends.append(end)
        for end in ends:
            self._jobs.pop(end.digest, None)
            self._gone.pop(end.digest, None)
        return ends

    def _judge(self, digest: str, job: str, queued: _Queued | None) -> TaskEnd | None:
        """Return the end of a job that wrote no result; None while it may still run."""
        if queued is not None and queued.state in _ALIVE:
            self._gone.pop(digest, None)
            if queued.state != "RUNNING":
                reason = f" ({queued.reason})" if queued.reason else ""
                state_text = f"Slurm job {job}, {queued.state.lower()}{reason}"
                self._status.set(digest, where=state_text)
            return None
        # A shared folder may show a job's files with a short delay.
        self._gone[digest] = self._gone.get(digest, 0) + 1
        if self._gone[digest] < 2:
            return None
        if queued is None:
            problem = f"Slurm no longer knows its job {job}"
        elif queued.state == "CANCELLED":
            problem = f"its Slurm job {job} was cancelled"
            return TaskEnd(digest=digest, state="failed", problem=problem)
        else:
            on = f" on {queued.machine}" if queued.machine else ""
            problem = f"its Slurm job {job} ended as {queued.state}{on}"
        return TaskEnd(digest=digest, state="lost", problem=problem)

    def _files(self, digest: str) -> TaskFiles:
        return TaskFiles(self._graph.folder, digest)


def job_parameters(settings: SlurmSettings, request: StepRequest) -> dict[str, Any]:
    """Return submitit's parameters of a job, whose first lines set the step's environment."""
    cpus = request.cpus or 1
    variables = {"PYTHONPATH": shlex.quote(python_path()), **dict.fromkeys(THREAD_VARIABLES, cpus)}
    parameters: dict[str, Any] = {
        "job_name": "spikein",
        "time": job_minutes(request.time or settings.time),
        "nodes": 1,
        "ntasks_per_node": 1,
        "cpus_per_task": cpus,
        "gpus_per_node": request.gpus or None,
        "mem": f"{request.memory_gb}GB" if request.memory_gb else None,
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "constraint": settings.constraint,
        "array_parallelism": settings.parallel,
        "signal_delay_s": settings.warning_seconds,
        "srun_args": [f"--cpus-per-task={cpus}"],
        "setup": [
            *settings.setup,
            *(f"export {name}={value}" for name, value in variables.items()),
        ],
    }
    return {name: value for name, value in parameters.items() if value is not None}


def _queue(ids: Sequence[str]) -> Mapping[str, _Queued] | None:
    """Return the states of jobs, without those that Slurm no longer knows.

    None if Slurm does not answer: a controller that is down for a moment has lost no job.
    """
    states: dict[str, _Queued] = {}
    job_ids = ",".join(dict.fromkeys(array_id.partition("_")[0] for array_id in ids))
    done = _run(
        [
            "squeue",
            "--noheader",
            "--array",
            "--states=all",
            "--format=%i|%T|%r|%N",
            "--jobs",
            job_ids,
        ]
    )
    if done is None or (done.returncode and "Invalid job id" not in done.stderr):
        return None
    for line in done.stdout.splitlines():
        name, state, reason, machine = (line.strip().split("|") + [""] * 3)[:4]
        visible_reason = "" if reason in ("None", "N/A") else reason
        states[name] = _Queued(state, visible_reason, machine)
    return states


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Return the output of a Slurm command; None if it takes too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def writable_by_others(folder: Path) -> Path | None:
    """Return the first folder on the path of `folder` in which others could replace it.

    Submitit describes each job by a pickle in the folder of the run, without a digest: only the
    user may enter that folder, which is safe only if no other user can replace it.
    """
    for parent in folder.resolve().parents:
        status = parent.stat()
        others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if status.st_uid not in (0, os.getuid()) or (others and not status.st_mode & stat.S_ISVTX):
            return parent
    return None


def _require_slurm() -> None:
    """Check that jobs can be submitted from here.

    Raises:
        InputError: when submitit is not installed, or this machine is not in a Slurm cluster.
    """
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"submitit cannot be imported: {error}",
            where="executor slurm",
            hint=f"{sys.executable} -m pip install 'spikein[slurm]'",
        ) from None
    missing = [name for name in ("sbatch", "srun", "squeue", "scancel") if not shutil.which(name)]
    if missing:
        raise InputError(
            f"Slurm's commands are not here: {', '.join(missing)}",
            where="executor slurm",
            hint="Start the run on a machine of the cluster that can submit jobs.",
        )


class _Warned(BaseException):
    """The warning came when no restart checkpoint can be written."""


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """Build one step in a Slurm job, and record its end."""

    task: Task
    attempts: int
    """Maximum attempts of a step without restart checkpoints that reaches the end of its time."""

    def __call__(self) -> str:
        """Build the step; return its end. Submitit calls this in the job."""
        files = TaskFiles(self.task.graph.folder, self.task.digest)
        at_rest = signal.getsignal(signal.SIGTERM)
        warned = False

        def warn(_number: int, _frame: FrameType | None) -> None:
            nonlocal warned
            warned = True
            if signal.getsignal(signal.SIGTERM) is at_rest:
                raise _Warned
            # A step that trains handles SIGTERM: it writes a restart checkpoint and ends.
            signal.raise_signal(signal.SIGTERM)

        signal.signal(WARNING, warn)
        begun = int(os.environ.get("SLURM_RESTART_COUNT", "0")) + 1
        try:
            end = run_task(replace(self.task, attempt=begun), f"Slurm job {job_id()}")
        except _Warned:
            if begun < self.attempts:
                requeue()
            end = TaskEnd(
                digest=self.task.digest,
                state="failed",
                problem=f"its Slurm job came to the end of its time (attempt {begun} of "
                f"{self.attempts}); give it more by executor.time",
            )
        signal.signal(WARNING, signal.SIG_IGN)
        if end.state == "lost":
            if warned:
                requeue()
            # Cancelled or preempted: Slurm knows which.
            sys.exit(128 + signal.SIGTERM)
        files.write_end(asdict(end))
        return end.state


def job_id() -> str:
    """Return this job's id, as Slurm's commands take it."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    if array:
        return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    return os.environ.get("SLURM_JOB_ID", "")


def requeue() -> None:
    """Put this job back into Slurm's queue, and end."""
    print(f"job {job_id()} is put back into the queue", flush=True)
    subprocess.run(["scontrol", "requeue", job_id()], check=True, timeout=_REQUEUE_SECONDS)
    sys.exit(128 + signal.SIGTERM)
