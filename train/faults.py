"""Faults of a training run, in words that say what to do: memory, disk, a loss that ran away.

Torch, safetensors and the operating system each tell them in their own way, some as a bare
`RuntimeError`; whatever is none of these passes through as it is.
"""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from inject.errors import InputError, SpikeinError
from train.execution import ExecutionSettings
from train.record import TrainingDiverged
from train.resume import drop_diverged
from train.settings import TrainSettings

_MEMORY_WORDS = ("can't allocate memory", "out of memory", "bad_alloc", "CUBLAS_STATUS_ALLOC")
_DISK_WORDS = ("No space left on device", "Disk quota exceeded", "os error 28")
_HALF_WRITTEN = "PytorchStreamWriter"
"""Torch tells of a file that it could not write without saying why."""


class OutOfMemory(SpikeinError):
    """A device, or this machine, has no memory left for the run."""


@contextmanager
def explained(
    settings: TrainSettings, execution: ExecutionSettings, unfinished: Path | None, out: Path
) -> Iterator[None]:
    """Turn the faults that training is known for into errors that say what to do.

    Raises:
        OutOfMemory: names what to lower.
        InputError: the disk is full.
        TrainingDiverged: with the last good checkpoint; those of the diverged steps are removed.
    """
    try:
        yield
    except TrainingDiverged as error:
        raise TrainingDiverged(
            f"{error} {_last_good(unfinished, error.step)}", step=error.step
        ) from None
    except (MemoryError, RuntimeError, OSError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or _says(error, _MEMORY_WORDS):
            raise OutOfMemory(_memory_advice(settings, execution, error)) from error
        if _disk_full(error, out):
            raise _full(out, error) from error
        raise
    except Exception as error:
        # safetensors has an error of its own for everything that goes wrong with a file.
        if _disk_full(error, out):
            raise _full(out, error) from error
        raise


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    return any(word in str(error) for word in words)


def _disk_full(error: BaseException, out: Path) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    if _says(error, _DISK_WORDS):
        return True
    return _HALF_WRITTEN in str(error) and shutil.disk_usage(out).free < 1 << 20


def _full(out: Path, error: BaseException) -> InputError:
    return InputError(
        f"the disk is full: {str(error).splitlines()[0]}",
        where=str(out),
        hint="Free some space (`spikein gc` removes what no run needs) and run the same command "
        "again: it goes on from the last whole checkpoint. train.checkpoints.most keeps fewer "
        "models along the way.",
    )


def _memory_advice(
    settings: TrainSettings, execution: ExecutionSettings, error: BaseException
) -> str:
    # Torch's first line tells how much was asked for.
    lines = [
        f"out of memory while training: {(str(error) or type(error).__name__).splitlines()[0]}"
    ]
    lines.append("Lower one of these, the first changes no result:")
    windows = execution.device_windows or settings.batch_windows // execution.processes
    if windows > 1:
        lines.append(f"  execution.device_windows: {windows // 2} (now {windows} on a device)")
    if not execution.checkpointing:
        lines.append("  execution.checkpointing: true (computes activations again)")
    if execution.engine != "deepspeed":
        lines.append("  execution: {engine: deepspeed, zero: 3, processes: N} (spreads the states)")
    elif execution.zero < 3 or not execution.offload:
        lines.append("  execution: {zero: 3, offload: true} (keeps the states in the CPU's memory)")
    lines.append(f"  train.context (now {settings.context}), or a smaller model")
    lines.append("`spikein plan` says what a run takes on each GPU.")
    return "\n".join(lines)


def _last_good(unfinished: Path | None, step: int) -> str:
    kept = None if unfinished is None else drop_diverged(unfinished, step)
    if kept is None:
        return "No checkpoint had been saved before that."
    return f"The last good checkpoint is kept: {kept}"
