"""What an experiment file says about where its steps run: `executor:`.

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
        ValueError: it is not a duration.
    """
    found = _TIME.fullmatch(time)
    if not found:
        raise ValueError(f"{time!r} is not a duration; write HOURS:MINUTES or DAYS-HOURS:MINUTES")
    days, hours, minutes = (int(found[name] or 0) for name in ("days", "hours", "minutes"))
    return max((24 * days + hours) * 60 + minutes, 1)


def _readable(time: str) -> str:
    job_minutes(time)
    return time


JobTime = Annotated[str, AfterValidator(_readable)]


class InProcessSettings(Settings):
    """One step after the other, in this process."""

    kind: Literal["in-process"] = "in-process"
    """One step after the other, in this process."""


class LocalSettings(Settings):
    """Several worker processes on this machine."""

    kind: Literal["local"] = "local"
    """Several worker processes on this machine."""
    workers: PositiveInt | None = None
    """How many steps run side by side; null takes one a GPU, without GPUs one for four cores, at
    least two."""
    attempts: PositiveInt = 3
    """How often a step is begun whose worker is killed; a step that raises an error is not begun
    again."""


class StepRequest(Settings):
    """What a step of one kind asks for, where it is not what the others ask for."""

    cpus: PositiveInt | None = None
    """Processor cores."""
    gpus: Count | None = None
    """GPUs on one machine."""
    memory_gb: PositiveInt | None = None
    """Gigabytes of memory."""
    time: JobTime | None = None
    """Longest time of a Slurm job, `HOURS:MINUTES` or `DAYS-HOURS:MINUTES`."""


class ClusterSettings(Settings):
    """What steps ask a cluster for."""

    cpus: PositiveInt = 1
    """Processor cores of a step; as many threads are started."""
    gpus: Count = 0
    """GPUs of a step, on one machine."""
    memory_gb: PositiveInt | None = None
    """Gigabytes of memory of a step; null leaves it to the cluster."""
    steps: dict[str, StepRequest] = Field(default_factory=dict)
    """Other requests by kind of step, such as `model: {gpus: 1}`."""
    attempts: PositiveInt = 3
    """How often a step is begun whose machine or job is lost; a step that raises an error is not
    begun again."""

    def request(self, kind: str) -> StepRequest:
        """Return what a step of a kind asks for, with nothing left open but memory and time."""
        own = self.steps.get(kind, StepRequest())
        given = own.model_dump(exclude_none=True)
        common = {"cpus": self.cpus, "gpus": self.gpus, "memory_gb": self.memory_gb}
        return StepRequest.model_validate({**common, **given})


class RaySettings(ClusterSettings):
    """A Ray cluster, or one that is started on this machine."""

    kind: Literal["ray"] = "ray"
    """A Ray cluster, or one that is started on this machine."""
    address: str | None = None
    """Of an existing cluster: `auto` or `HOST:PORT`; null takes `$RAY_ADDRESS`, else starts one on
    this machine that ends with the run."""


class SlurmSettings(ClusterSettings):
    """Jobs of a Slurm cluster, whose machines share the folder of the store."""

    kind: Literal["slurm"] = "slurm"
    """Jobs of a Slurm cluster, whose machines share the folder of the store."""
    partition: str | None = None
    """The partition; null takes the cluster's default."""
    account: str | None = None
    """The account that is charged; null takes your default."""
    qos: str | None = None
    """The quality of service; null takes your default."""
    constraint: str | None = None
    """Features that a machine must have, as `sbatch --constraint` takes them."""
    time: JobTime = "4:00"
    """Longest time of a job, `HOURS:MINUTES` or `DAYS-HOURS:MINUTES`. A training step that reaches
    it writes a checkpoint and goes on in another job."""
    parallel: PositiveInt = 64
    """Most jobs of one array that run at a time."""
    warning_seconds: PositiveInt = 90
    """How long before its end a job is warned, to write a checkpoint."""
    setup: tuple[str, ...] = ()
    """Shell commands that each job runs first, such as `module load cuda`."""


AnyExecutor = Annotated[
    InProcessSettings | LocalSettings | RaySettings | SlurmSettings, Field(discriminator="kind")
]
