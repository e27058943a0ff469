"""One step as a Slurm job: what runs on the machine that Slurm chose.

Before its time is over, or when it has to make room, Slurm warns a job by a signal. A training step
then writes a checkpoint, and the job is put back into the queue and goes on from there. Another
step begins anew in the next job, a few times.
"""

import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from types import FrameType

from spikein.executors.task import Task, TaskEnd, run_task
from spikein.executors.task_files import TaskFiles

WARNING = signal.SIGUSR2
"""What Slurm is asked to warn by."""
_REQUEUE_SECONDS = 120


class _Warned(BaseException):
    """The warning came where no checkpoint can be written."""


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """Builds one step in a Slurm job, and writes down how it ended."""

    task: Task
    attempts: int
    """How often a step that cannot write a checkpoint is begun that reaches the end of its time."""

    def __call__(self) -> str:
        """Build the step; return how it ended. Submitit calls this in the job."""
        files = TaskFiles(self.task.graph.folder, self.task.digest)
        at_rest = signal.getsignal(signal.SIGTERM)
        warned = False

        def warn(_number: int, _frame: FrameType | None) -> None:
            nonlocal warned
            warned = True
            if signal.getsignal(signal.SIGTERM) is at_rest:
                raise _Warned
            # A step that trains handles SIGTERM: it writes a checkpoint and ends.
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
            # Cancelled or preempted: which of them it was, Slurm knows.
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
