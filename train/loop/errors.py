"""Errors of a training run with advice: memory, disk, a diverged training loss.

Torch, safetensors and the operating system raise these faults as types of their own, some as a bare
`RuntimeError`; any other error passes through unchanged.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from inject.errors import InputError, SpikeinError
from inject.files import (
    free_bytes,
    human_bytes,
    means_full_disk,
    nearest_existing,
    with_causes,
)
from train.execution import ExecutionSettings
from train.loop.record import TrainingDiverged
from train.loop.resume import drop_diverged, drop_unfinished
from train.settings import TrainSettings

_MEMORY_WORDS = ("can't allocate memory", "out of memory", "bad_alloc", "CUBLAS_STATUS_ALLOC")
_HALF_WRITTEN = ("PytorchStreamWriter", "unexpected pos", "inline_container.cc", "basic_ios::clear")
"""Parts of torch's message about a file that it could not write, without the reason."""
_PROBE_BYTES = 1 << 20


class OutOfMemory(SpikeinError):
    """A device, or this machine, has no memory left for the run."""


@contextmanager
def explain_faults(
    settings: TrainSettings, execution: ExecutionSettings, unfinished: Path | None, out: Path
) -> Iterator[None]:
    """Turn the known faults of training into errors with advice.

    Raises:
        OutOfMemory: names what to lower.
        InputError: if the disk is full.
        TrainingDiverged: with the last good restart checkpoint; those of the diverged steps are
            removed.
    """
    try:
        yield
    except TrainingDiverged as error:
        raise TrainingDiverged(
            f"{error} {_last_good(unfinished, error.step)}", step=error.step
        ) from None
    except (MemoryError, RuntimeError, OSError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or _contains(
            error, _MEMORY_WORDS
        ):
            raise OutOfMemory(_memory_advice(settings, execution, error)) from error
        _raise_if_full(error, unfinished, out)
        raise
    except Exception as error:
        # safetensors has an error of its own for everything that goes wrong with a file.
        _raise_if_full(error, unfinished, out)
        raise


def _contains(error: BaseException, words: tuple[str, ...]) -> bool:
    return any(word in str(error) for word in words)


def _raise_if_full(error: BaseException, unfinished: Path | None, out: Path) -> None:
    """Raise an error that names the disk if this one, or its cause, means a full disk."""
    places = [out] if unfinished is None else [unfinished, out]
    # The cause of the last error is often more informative: torch closes a file that it could not
    # write, and fails again.
    causes = list(with_causes(error))
    cause = next((candidate for candidate in causes if means_full_disk(candidate)), None)
    full = min(places, key=free_bytes)
    if cause is None and any(_contains(candidate, _HALF_WRITTEN) for candidate in causes):
        full_place = next((place for place in places if _is_full(place)), None)
        if full_place is not None:
            full, cause = full_place, error
    if cause is None:
        return
    # Checked before the space of an unfinished restart checkpoint is released.
    free = human_bytes(free_bytes(full))
    if unfinished is not None:
        drop_unfinished(unfinished)
    words = str(cause).splitlines() or [type(cause).__name__]
    raise InputError(
        f"the disk is full: {free} free on {_mount(full)}; {words[0]}",
        where=str(full),
        hint="Free some space (`spikein gc` removes what no run needs) and run the same command "
        "again: it resumes from the last whole checkpoint. train.checkpoints.max_kept keeps fewer "
        "intermediate models.",
    ) from error


def _is_full(place: Path) -> bool:
    """Test by writing: with a quota, the disk itself still has space."""
    try:
        with tempfile.TemporaryFile(dir=nearest_existing(place)) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return means_full_disk(error)
    return False


def _mount(place: Path) -> Path:
    """Return the mount point of a path."""
    place = nearest_existing(place).resolve()
    while place != place.parent and place.parent.stat().st_dev == place.stat().st_dev:
        place = place.parent
    return place


def _memory_advice(
    settings: TrainSettings, execution: ExecutionSettings, error: BaseException
) -> str:
    # Torch's first line contains the requested size.
    lines = [
        f"out of memory while training: {(str(error) or type(error).__name__).splitlines()[0]}"
    ]
    lines.append("Lower one of these, the first changes no result:")
    windows = execution.micro_batch_windows or settings.batch_windows // execution.processes
    if windows > 1:
        lines.append(
            f"  training_runtime.micro_batch_windows: {windows // 2} (now {windows} on a device)"
        )
    if not execution.gradient_checkpointing:
        lines.append("  training_runtime.gradient_checkpointing: true (computes activations again)")
    if execution.backend != "deepspeed":
        lines.append(
            "  training_runtime: {engine: deepspeed, zero: 3, processes: N} (spreads the states)"
        )
    elif execution.zero < 3 or not execution.offload:
        lines.append(
            "  training_runtime: {zero: 3, offload: true} (keeps the states in the CPU's memory)"
        )
    lines.append(f"  train.context (now {settings.context}), or a smaller model")
    lines.append("`spikein plan` estimates the memory of a run on each GPU.")
    return "\n".join(lines)


def _last_good(unfinished: Path | None, step: int) -> str:
    checkpoint = None if unfinished is None else drop_diverged(unfinished, step)
    if checkpoint is None:
        return "No checkpoint had been saved before that."
    return f"The last good checkpoint is kept: {checkpoint}"
