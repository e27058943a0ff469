"""How a training run is computed: engine, processes, ZeRO stage. Never part of its identity, but
for DeepSpeed, whose configuration and version are (`engine_identity`, `training_libraries`).

The windows of each optimiser step, their order, and the exposures are the same under every engine;
the weights agree to the rounding of the engine's sums. The one exception to that is `batch_windows`
of `train`, which is identity and must be shared out evenly.
"""

import importlib.util
import json
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from inject.errors import InputError
from inject.settings import PositiveFloat, PositiveInt, Settings
from inject.shipped import CONFIGS

Tracker = Literal["tensorboard", "wandb", "trackio", "mlflow"]
Engine = Literal["auto", "process", "torchrun", "deepspeed"]
Backend = Literal["process", "torchrun", "deepspeed"]
Kernel = Literal["auto", "sdpa", "eager", "flash_attention_2"]


class ExecutionSettings(Settings):
    """Where and how models are trained; changes no result beyond rounding."""

    engine: Engine = "auto"
    """`process`: in the current process; `torchrun`: several processes, each with a whole model;
    `deepspeed`: several processes with ZeRO; `auto`: `deepspeed` if `processes` is more than 1,
    else `process`."""
    processes: PositiveInt = 1
    """Processes on this machine, usually one a GPU."""
    zero: Annotated[int, Field(ge=0, le=3)] = 2
    """ZeRO stage of `deepspeed`: 1 shares out the optimiser's states, 2 gradients, too, 3 weights,
    too."""
    offload: bool = False
    """Keep the optimiser's states (with stage 3 the weights, too) in the memory of the CPU; for
    stages 2 and 3."""
    device_windows: PositiveInt | None = None
    """Windows of one forward pass on one device; fewer need less memory and more passes, and null
    takes the largest that the step's share holds. Unlearning takes the largest number up to this
    that divides its smaller steps."""
    kernel: Kernel = "auto"
    """What computes attention: `sdpa` (torch's own, flash attention where the GPU has it), `eager`
    (plain, slow), `flash_attention_2` (the package flash-attn); `auto` takes the model's own."""
    checkpointing: bool = False
    """Gradient checkpointing: a third more operations for a fraction of the memory."""
    compile: bool = False
    """Compile the model with `torch.compile`: slow to start, faster on GPUs."""
    resume_every: PositiveInt | None = None
    """Optimiser steps between two checkpoints for a restart; null saves one in five minutes, or
    less often, so that they take at most 2 % of the time."""
    silent_after: PositiveFloat | None = None
    """Seconds of silence after which one of several processes is taken to hang; null allows twenty
    of the run's own steps, at least two minutes. The first step and saving are allowed 15 minutes,
    what comes before 30, or this where it is more."""
    trackers: tuple[Tracker, ...] = ()
    """Where training, and at the end the results, are reported besides: `tensorboard`, `wandb`,
    `trackio`, `mlflow`; each has to be installed, and takes keys from its own environment
    variables."""

    @property
    def backend(self) -> Backend:
        """The engine, `auto` resolved: by the settings only, since the engine is identity."""
        if self.engine != "auto":
            return self.engine
        return "deepspeed" if self.processes > 1 else "process"

    def label(self) -> str:
        """Return a clause on the way that models are trained, for people."""
        if self.backend == "process":
            return "in the current process"
        offload = " and offloading" if self.offload else ""
        engine = f"DeepSpeed (ZeRO stage {self.zero}{offload})"
        name = engine if self.backend == "deepspeed" else "torchrun"
        return f"in {self.processes} processes with {name}"

    @model_validator(mode="after")
    def _consistent(self) -> "ExecutionSettings":
        if self.engine == "process" and self.processes > 1:
            raise ValueError(
                f"engine `process` is one process, not {self.processes}; use torchrun or deepspeed"
            )
        if self.offload and (self.backend != "deepspeed" or self.zero < 2):
            raise ValueError(
                "offload requires engine deepspeed (auto: several processes) with zero 2 or 3"
            )
        return self

    def for_texts(self, batch_texts: int, processes: int) -> "ExecutionSettings":
        """Return these settings for a run in small steps: `device_windows` is the most of a pass.

        One section serves all runs of an experiment, and the steps of unlearning are smaller than
        those of training.

        Args:
            batch_texts: texts of an optimiser step.
            processes: how many share them.

        Raises:
            InputError: they cannot be shared out evenly to the processes.
        """
        if batch_texts % processes:
            raise InputError(
                f"{batch_texts} texts of a step cannot be shared out evenly to {processes} "
                "processes",
                where="batch_texts",
                allowed=f"a multiple of {processes}",
                hint="Change batch_texts of the method, or execution.processes.",
            )
        if self.device_windows is None:
            return self
        fitting = [one for one in _divisors(batch_texts // processes) if one <= self.device_windows]
        return self.model_copy(update={"device_windows": fitting[-1]})

    def whole_step(self, texts: int, processes: int) -> tuple[int, "ExecutionSettings"]:
        """Return the windows of a step with all texts, filled up, and these settings for it.

        Every pass is as large.

        Args:
            texts: of the step, at least 1.
            processes: how many share them.
        """
        share = -(-texts // processes)
        passes = -(-share // (self.device_windows or share))
        windows = -(-share // passes)
        given = None if self.device_windows is None else windows
        execution = self.model_copy(update={"device_windows": given})
        return processes * passes * windows, execution

    def device_batch(self, batch_windows: int, processes: int) -> int:
        """Return the windows of one forward pass on one device.

        Args:
            batch_windows: windows of an optimiser step.
            processes: how many share them.

        Raises:
            InputError: the step's windows cannot be shared out evenly.
        """
        if batch_windows % processes:
            raise InputError(
                f"{batch_windows} windows of a step cannot be shared out evenly to {processes} "
                "processes",
                where="execution.processes",
                allowed=", ".join(str(one) for one in _divisors(batch_windows)),
                hint="Change batch_tokens, or the number of processes.",
            )
        share = batch_windows // processes
        if self.device_windows is None:
            return share
        if share % self.device_windows:
            raise InputError(
                f"a process has {share} windows of each step, which {self.device_windows} do not "
                "divide",
                where="execution.device_windows",
                allowed=", ".join(str(one) for one in _divisors(share)),
            )
        return self.device_windows


def require_installed(execution: ExecutionSettings) -> None:
    """Check that the packages are there that these settings name.

    Raises:
        InputError: names what to install.
    """
    if execution.backend == "deepspeed" and importlib.util.find_spec("deepspeed") is None:
        raise InputError(
            "DeepSpeed is not installed",
            where="execution.engine",
            allowed="process, torchrun",
            hint="pip install deepspeed (Linux only), or set execution.engine=torchrun.",
        )
    for name in execution.trackers:
        if importlib.util.find_spec(name) is None:
            raise InputError(
                f"the tracker {name} is not installed",
                where="execution.trackers",
                hint=f"pip install {name}, or remove it: the run's folder contains the same data.",
            )


def deepspeed_config(execution: ExecutionSettings) -> dict[str, Any] | None:
    """Return DeepSpeed's configuration for these settings, or None for the other engines.

    Raises:
        InputError: DeepSpeed is not installed.
    """
    if execution.backend != "deepspeed":
        return None
    require_installed(execution)
    name = f"zero{execution.zero}{'-offload' if execution.offload else ''}.json"
    config: dict[str, Any] = json.loads((CONFIGS / "deepspeed" / name).read_text(encoding="utf-8"))
    return config


def engine_identity(execution: ExecutionSettings) -> dict[str, Any]:
    """Return what of the engine decides weights beyond rounding: DeepSpeed's configuration."""
    config = deepspeed_config(execution)
    return {} if config is None else {"deepspeed": config}


def training_libraries(execution: ExecutionSettings, *, adapters: bool = False) -> tuple[str, ...]:
    """Return the libraries whose versions decide what training makes.

    Args:
        execution: of the experiment.
        adapters: whether weights are trained through adapters.
    """
    engine = ("deepspeed",) if execution.backend == "deepspeed" else ()
    return ("torch", "transformers", "accelerate", *(("peft",) if adapters else ()), *engine)


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]
