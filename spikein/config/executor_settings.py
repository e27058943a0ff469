"""The section `executor:` of an experiment file, which sets where its steps run.

None of it is part of an identity: the artifacts of every executor are the same.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from inject.settings import PositiveInt, Settings

Count = Annotated[int, Field(ge=0, le=10**6)]

_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<hours>\d+):(?P<minutes>[0-5]\d)(?::[0-5]\d)?")


def job_minutes(time: str) -> int:
    """Return the minutes of a job's time, at least 1.

    Raises:
        ValueError: for a text that is not a duration.
    """
    match = _TIME.fullmatch(time)
    if not match:
        raise ValueError(f"{time!r} is not a duration; write HOURS:MINUTES or DAYS-HOURS:MINUTES")
    days, hours, minutes = (int(match[name] or 0) for name in ("days", "hours", "minutes"))
    return max((24 * days + hours) * 60 + minutes, 1)


def _check_time(time: str) -> str:
    job_minutes(time)
    return time


JobTime = Annotated[str, AfterValidator(_check_time)]


class InProcessSettings(Settings):
    """One step after the other, in this process."""

    kind: Literal["in-process"] = "in-process"
    """One step after the other, in this process."""


class LocalSettings(Settings):
    """Several worker processes on this machine."""

    kind: Literal["local"] = "local"
    """Several worker processes on this machine."""
    workers: PositiveInt | None = None
    """Steps that run at the same time; null: one per GPU, or without GPUs one per four cores, at
    least two."""
    attempts: PositiveInt = 3
    """Maximum attempts of a step whose process, machine or job is lost; errors are not retried."""


class StepRequest(Settings):
    """Requests of steps of one kind that differ from the others."""

    cpus: PositiveInt | None = None
    """Processor cores."""
    gpus: Count | None = None
    """GPUs on one machine."""
    memory_gb: PositiveInt | None = None
    """Gigabytes of memory."""
    time: JobTime | None = None
    """Longest time of a Slurm job, `HOURS:MINUTES` or `DAYS-HOURS:MINUTES`."""


class ClusterSettings(Settings):
    """Resources that steps request from a cluster."""

    cpus: PositiveInt = 1
    """Processor cores, and threads, of a step."""
    gpus: Count = 0
    """GPUs of a step, on one machine."""
    memory_gb: PositiveInt | None = None
    """Gigabytes of memory of a step; null: the cluster's default."""
    steps: dict[str, StepRequest] = Field(default_factory=dict)
    """Other requests by kind of step, such as `model: {gpus: 1}`."""
    attempts: PositiveInt = 3
    """Maximum attempts of a step whose process, machine or job is lost; errors are not retried."""

    def request(self, kind: str) -> StepRequest:
        """Return the requests of a step of a kind; only memory and time may be unset."""
        own = self.steps.get(kind, StepRequest())
        values = own.model_dump(exclude_none=True)
        common = {"cpus": self.cpus, "gpus": self.gpus, "memory_gb": self.memory_gb}
        return StepRequest.model_validate({**common, **values})


class RaySettings(ClusterSettings):
    """A Ray cluster, or one that is started on this machine."""

    kind: Literal["ray"] = "ray"
    """A Ray cluster, or one that is started on this machine."""
    address: str | None = None
    """An existing cluster: `auto` or `HOST:PORT`; null: `$RAY_ADDRESS`, else a cluster on this
    machine that ends with the run."""


class SlurmSettings(ClusterSettings):
    """Jobs of a Slurm cluster, whose machines share the folder of the store."""

    kind: Literal["slurm"] = "slurm"
    """Jobs of a Slurm cluster, whose machines share the folder of the store."""
    partition: str | None = None
    """Partition; null: the cluster's default."""
    account: str | None = None
    """Account to charge; null: your default."""
    qos: str | None = None
    """Quality of service; null: your default."""
    constraint: str | None = None
    """Required features of a machine, as for `sbatch --constraint`."""
    time: JobTime = "4:00"
    """Longest time of a job, `HOURS:MINUTES` or `DAYS-HOURS:MINUTES`; training continues in another
    job."""
    parallel: PositiveInt = 64
    """Maximum jobs of one array at a time."""
    warning_seconds: PositiveInt = 90
    """Time before its end at which a job is warned, to write a checkpoint."""
    setup: tuple[str, ...] = ()
    """Shell commands before each job, such as `module load cuda`."""


AnyExecutor = Annotated[
    InProcessSettings | LocalSettings | RaySettings | SlurmSettings, Field(discriminator="kind")
]
