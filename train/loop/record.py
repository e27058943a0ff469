"""The record of a run, read back step by step: for the exposures, the log and the progress display.

The ids come from the tensor that went through the model, together with the loss of that step.
On the CPU they are read in every step; on a GPU every `READ_EVERY` steps, so that the device
never waits for us; the tokens per second are then those of the whole block.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from inject.errors import SpikeinError, first_names
from inject.stream.exposures import TrainedWindow
from train.loop.dataset import FedWindow
from train.loop.log import LogRow, TrainingProgress
from train.processes.environment import rank, sum_over_processes, world_size

READ_EVERY = 20
"""Steps between two readings of a device other than the CPU."""


Progress = Callable[[TrainingProgress], None]
"""Called after every reading of the device."""


class Recorder(Protocol):
    """Records which windows were fed: `inject.stream.exposures.ExposureRecorder`."""

    def record(self, fed: TrainedWindow, ids: npt.NDArray[np.int64]) -> None:
        """Record one window that was fed to the model."""
        ...

    def write(self, folder: Path) -> None:
        """Write the record into a folder."""
        ...

    def recorded(self) -> pa.Table:
        """Return the record so far."""
        ...

    def restore(self, exposures: pa.Table) -> None:
        """Load the record of an earlier start of the run."""
        ...


class TrainingDiverged(SpikeinError):
    """The loss became infinite or not a number."""

    def __init__(self, message: str, *, step: int) -> None:
        """Set the message and the step.

        Args:
            message: for people.
            step: the first optimiser step with such a loss.
        """
        super().__init__(message)
        self.step = step


class PendingPass(NamedTuple):
    """A queued forward and backward pass that has not been read yet."""

    step: int
    lr: float
    fed: list[FedWindow]
    ids: torch.Tensor
    loss: torch.Tensor
    labels: torch.Tensor | None = None
    """Number of tokens with a loss; None for all but the first of each window."""


class Record:
    """Reads back each step's input and loss, for exposures, log and progress."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        context: int,
        windows: int,
        progress: Progress | None,
        passes: int = 1,
        mfu_share: float = float("nan"),
    ) -> None:
        """Record nothing yet.

        Args:
            recorder: receives the exposures.
            context: tokens of a window.
            windows: number in all epochs.
            progress: called after every reading, in the first process.
            passes: passes per optimiser step, in this process.
            mfu_share: model FLOPs utilisation for each token per second; NaN if it is not known.
        """
        self.rows: list[LogRow] = []
        self.recorder = recorder
        self._context = context
        self._windows = windows
        self._progress = progress if rank() == 0 else None
        self._passes = passes
        self._mfu_share = mfu_share
        self._pending: list[PendingPass] = []
        self._tokens = 0
        self._last_read = 0.0
        self._last_loss = float("nan")

    def restore(self, *, rows: list[LogRow], exposures: pa.Table) -> None:
        """Load the record of an earlier start of the run, before any step of this one."""
        self.rows = list(rows)
        self._tokens = rows[-1].tokens if rows else 0
        self.recorder.restore(exposures)

    def start(self) -> None:
        """Start the clock."""
        self._last_read = time.perf_counter()

    def add(self, pending: PendingPass) -> None:
        """Add a queued pass; read it now or with others later.

        Steps are read whole, so that all processes read the same ones.
        """
        self._pending.append(pending)
        steps, started = divmod(len(self._pending), self._passes)
        if not started and (pending.loss.device.type == "cpu" or steps == READ_EVERY):
            self.read()

    def read(self) -> None:
        """Wait for the queued steps and record their results."""
        pending, self._pending = self._pending, []
        steps = [
            pending[first : first + self._passes] for first in range(0, len(pending), self._passes)
        ]
        losses = self._losses(steps)
        fed = [sum(entry.window >= 0 for part in step for entry in part.fed) for step in steps]
        windows = sum_over_processes([*fed]) if steps else []
        now = time.perf_counter()
        rate = sum(windows) * self._context / max(now - self._last_read, 1e-9)
        self._last_read = now
        mfu = rate * self._mfu_share
        for step, (loss, labelled), count in zip(steps, losses, windows, strict=True):
            for part in step:
                self._record_exposures(part)
            if not np.isfinite(loss):
                raise TrainingDiverged(_divergence_message(step, loss), step=step[0].step)
            if labelled:
                self._last_loss = loss
            self._tokens += round(count) * self._context
            value = loss if labelled else float("nan")
            self.rows.append(LogRow(step[0].step, self._tokens, value, step[0].lr, rate, mfu))
        if pending and self._progress is not None:
            total = self._windows * self._context
            self._progress(TrainingProgress(self._tokens, total, self._last_loss, rate, mfu))

    def _losses(self, steps: list[list[PendingPass]]) -> list[tuple[float, bool]]:
        """Return each step's mean loss over all processes, and whether any token carried one.

        The parts of a step are scaled so that they add up to its mean; with several processes each
        part is scaled up by their number, since gradients are averaged over them.
        """
        if not steps:
            return []
        values = [sum(part.loss.item() for part in step) / world_size() for step in steps]
        labels = [
            sum(1.0 if part.labels is None else part.labels.item() for part in step)
            for step in steps
        ]
        sums = sum_over_processes([*values, *labels])
        return [
            (value, count > 0)
            for value, count in zip(sums[: len(steps)], sums[len(steps) :], strict=True)
        ]

    def _record_exposures(self, part: PendingPass) -> None:
        """Record the windows of a pass, without those that only pad the last step."""
        for fed, ids in zip(part.fed, part.ids.cpu().numpy(), strict=True):
            if fed.window >= 0:
                before = fed.position * self._context
                window = TrainedWindow(fed.epoch, part.step, fed.window, before, rank())
                self.recorder.record(window, ids)


def _divergence_message(step: list[PendingPass], loss: float) -> str:
    fed_windows = [fed for part in step for fed in part.fed if fed.window >= 0]
    windows = first_names([f"{fed.window} (epoch {fed.epoch})" for fed in fed_windows], 8)
    return (
        f"the loss of step {step[0].step} is {loss}, at learning rate {step[0].lr:g}; its windows: "
        f"{windows}. A lower learning rate, a longer warm-up or float32 usually helps."
    )
