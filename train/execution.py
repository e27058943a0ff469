"""How a training run is computed: engine, processes, ZeRO stage. Not part of its identity, except
DeepSpeed's configuration and version (`engine_identity`, `training_libraries`).

The windows of each optimiser step, their order, and the exposures are the same under every engine;
the weights agree to the rounding of the engine's sums. The one exception is `batch_windows` of
`train`, which is part of the identity and must divide evenly among processes.
"""

import importlib.util
import json
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from inject.builtin_files import CONFIGS
from inject.errors import InputError
from inject.settings import PositiveFloat, PositiveInt, Settings

Tracker = Literal["tensorboard", "wandb", "trackio", "mlflow"]
Engine = Literal["auto", "process", "torchrun", "deepspeed"]
Backend = Literal["process", "torchrun", "deepspeed"]
Kernel = Literal["auto", "sdpa", "eager", "flash_attention_2"]


class ExecutionSettings(Settings):
    """Where and how models are trained; results change only by rounding."""

    engine: Engine = "auto"
    """`process`: the current process; `torchrun`: several processes, a whole model in each;
    `deepspeed`: several with ZeRO; `auto`: `deepspeed` for several `processes`, else `process`."""
    processes: PositiveInt = 1
    """Processes on this machine, usually one per GPU."""
    zero: Annotated[int, Field(ge=0, le=3)] = 2
    """ZeRO stage of `deepspeed`: 1 shards the optimiser's states, 2 also gradients, 3 also
    weights."""
    offload: bool = False
    """Keep the optimiser's states (stage 3: also the weights) in the CPU's memory; stages 2 and
    3."""
    micro_batch_windows: PositiveInt | None = None
    """Windows per forward pass and device; fewer need less memory and more passes; null: the whole
    share of a step. Unlearning uses the largest divisor of its steps up to this number."""
    attention: Kernel = "auto"
    """Attention kernel: `sdpa` (torch's, with flash attention on GPUs that support it), `eager`
    (plain, slow), `flash_attention_2` (package flash-attn); `auto`: the model's own."""
    gradient_checkpointing: bool = False
    """Gradient checkpointing: a third more operations, a fraction of the memory."""
    compile: bool = False
    """Compile the model with `torch.compile`: slow to start, faster on GPUs."""
    resume_every: PositiveInt | None = None
    """Optimiser steps between restart checkpoints; null: every five minutes, or less often to take
    at most 2 % of the time."""
    hang_timeout: PositiveFloat | None = None
    """Seconds without a heartbeat after which one of several processes counts as hanging; null:
    twenty of the run's steps, at least two minutes. At least 15 minutes for the first step and
    saving, 30 for start-up."""
    trackers: tuple[Tracker, ...] = ()
    """Installed trackers that also receive the training log and the final results: `tensorboard`,
    `wandb`, `trackio`, `mlflow`; keys come from their environment variables."""

    @property
    def backend(self) -> Backend:
        """The engine, `auto` resolved: by the settings only, since the engine is identity."""
        if self.engine != "auto":
            return self.engine
        return "deepspeed" if self.processes > 1 else "process"

    def label(self) -> str:
        """Return a clause on how models are trained, for display."""
        if self.backend == "process":
            return "in the current process"
        offload = " and offloading" if self.offload else ""
        engine = f"DeepSpeed (ZeRO stage {self.zero}{offload})"
        name = engine if self.backend == "deepspeed" else "torchrun"
        return f"in {self.processes} processes with {name}"

    @model_validator(mode="after")
    def _check_consistency(self) -> "ExecutionSettings":
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
        """Return these settings for a run in small steps: `micro_batch_windows` limits each pass.

        One section serves all runs of an experiment, and the steps of unlearning are smaller than
        those of training.

        Args:
            batch_texts: texts of an optimiser step.
            processes: number of processes that share them.

        Raises:
            InputError: if they cannot be divided evenly among the processes.
        """
        if batch_texts % processes:
            raise InputError(
                f"{batch_texts} texts of a step cannot be divided evenly among {processes} "
                "processes",
                where="batch_texts",
                allowed=f"a multiple of {processes}",
                hint="Change batch_texts of the method, or training_runtime.processes.",
            )
        if self.micro_batch_windows is None:
            return self
        fitting = [
            size for size in _divisors(batch_texts // processes) if size <= self.micro_batch_windows
        ]
        return self.model_copy(update={"micro_batch_windows": fitting[-1]})

    def whole_step(self, texts: int, processes: int) -> tuple[int, "ExecutionSettings"]:
        """Return the padded number of windows of a step with all texts, and these settings for it.

        All passes are equally large.

        Args:
            texts: of the step, at least 1.
            processes: number of processes that share them.
        """
        share = -(-texts // processes)
        passes = -(-share // (self.micro_batch_windows or share))
        windows = -(-share // passes)
        limit = None if self.micro_batch_windows is None else windows
        execution = self.model_copy(update={"micro_batch_windows": limit})
        return processes * passes * windows, execution

    def device_batch(self, batch_windows: int, processes: int) -> int:
        """Return the windows of one forward pass on one device.

        Args:
            batch_windows: windows of an optimiser step.
            processes: number of processes that share them.

        Raises:
            InputError: if the step's windows cannot be divided evenly.
        """
        if batch_windows % processes:
            raise InputError(
                f"{batch_windows} windows of a step cannot be divided evenly among {processes} "
                "processes",
                where="training_runtime.processes",
                allowed=", ".join(str(divisor) for divisor in _divisors(batch_windows)),
                hint="Change batch_tokens, or the number of processes.",
            )
        share = batch_windows // processes
        if self.micro_batch_windows is None:
            return share
        if share % self.micro_batch_windows:
            raise InputError(
                f"a process has {share} windows of each step, which {self.micro_batch_windows} do "
                "not divide",
                where="training_runtime.micro_batch_windows",
                allowed=", ".join(str(divisor) for divisor in _divisors(share)),
            )
        return self.micro_batch_windows


def require_installed(execution: ExecutionSettings) -> None:
    """Check that the packages named by these settings are installed.

    Raises:
        InputError: names what to install.
    """
    if execution.backend == "deepspeed" and importlib.util.find_spec("deepspeed") is None:
        raise InputError(
            "DeepSpeed is not installed",
            where="training_runtime.engine",
            allowed="process, torchrun",
            hint="pip install deepspeed (Linux only), or set training_runtime.engine=torchrun.",
        )
    for name in execution.trackers:
        if importlib.util.find_spec(name) is None:
            raise InputError(
                f"the tracker {name} is not installed",
                where="training_runtime.trackers",
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
    return json.loads((CONFIGS / "deepspeed" / name).read_text(encoding="utf-8"))


def engine_identity(execution: ExecutionSettings) -> dict[str, Any]:
    """Return the part of the engine that affects weights beyond rounding: DeepSpeed's
    configuration."""
    config = deepspeed_config(execution)
    return {} if config is None else {"deepspeed": config}


def training_libraries(execution: ExecutionSettings, *, adapters: bool = False) -> tuple[str, ...]:
    """Return the libraries whose versions affect trained weights.

    Args:
        execution: execution settings of the experiment.
        adapters: whether weights are trained through adapters.
    """
    engine = ("deepspeed",) if execution.backend == "deepspeed" else ()
    return ("torch", "transformers", "accelerate", *(("peft",) if adapters else ()), *engine)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
