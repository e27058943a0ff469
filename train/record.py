"""What a run did, read back step by step: for the ledger, the log and the progress display.

The ids come from the tensor that went through the model, together with the loss of that step.
On the CPU they are read in every step; on a GPU every `READ_EVERY` steps, so that the device
never waits for us; the tokens per second are then those of the whole block.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from inject.errors import SpikeinError
from train.log import LogRow
from train.stream import Fed

READ_EVERY = 20
"""Steps between two readings of the device, where there is one beside the CPU."""

Progress = Callable[[int, int, float], None]
"""Called with tokens done, tokens in all, and the loss of the last step."""


class Ledger(Protocol):
    """What is told which windows were fed: `inject.ledger.ExposureLedger`."""

    def saw(
        self,
        *,
        epoch: int,
        step: int,
        window: int,
        tokens_before: int,
        ids: npt.NDArray[np.int64],
    ) -> None:
        """Record one window that was fed to the model."""
        ...

    def write(self, path: Path) -> None:
        """Write all that was recorded."""
        ...

    def seen(self) -> pa.Table:
        """Return what was recorded so far."""
        ...

    def restore(self, exposures: pa.Table) -> None:
        """Take over what an earlier start of the run recorded."""
        ...


class TrainingDiverged(SpikeinError):
    """The loss became infinite or not a number."""


@dataclass(frozen=True, kw_only=True)
class TrainSummary:
    """What a training run came to."""

    steps: int
    """Optimiser steps."""
    windows: int
    """Windows fed, all epochs together."""
    tokens: int
    """Tokens fed, all epochs together."""
    seconds: float
    """Wall time of the steps since this start; loading and saving the model not included."""
    tokens_per_second: float
    """Tokens fed since this start over `seconds`."""
    first_loss: float
    """Mean loss of the first steps (a twentieth of them), in nats a token."""
    last_loss: float
    """Mean loss of the last steps (a twentieth of them), in nats a token."""


class Pending(NamedTuple):
    """A step that has been queued and not been read yet."""

    step: int
    lr: float
    fed: list[Fed]
    ids: torch.Tensor
    loss: torch.Tensor


class Record:
    """Reads back what each step was fed and what it lost, for ledger, log and progress."""

    def __init__(
        self, ledger: Ledger, *, context: int, windows: int, progress: Progress | None
    ) -> None:
        self.rows: list[LogRow] = []
        self.ledger = ledger
        self._context = context
        self._windows = windows
        self._progress = progress
        self._pending: list[Pending] = []
        self._tokens = self._restored = 0
        self._started = self._last_read = 0.0

    def restore(self, *, rows: list[LogRow], exposures: pa.Table) -> None:
        """Take over what an earlier start of the run did, before any step of this one."""
        self.rows = list(rows)
        self._tokens = self._restored = rows[-1].tokens if rows else 0
        self.ledger.restore(exposures)

    def start(self) -> None:
        """Start the clock."""
        self._started = self._last_read = time.perf_counter()

    def add(self, pending: Pending) -> None:
        """Take a step that has been queued; read it now or with others later."""
        self._pending.append(pending)
        if pending.loss.device.type == "cpu" or len(self._pending) == READ_EVERY:
            self.read()

    def read(self) -> None:
        """Wait for the queued steps and write down what happened in them."""
        pending, self._pending = self._pending, []
        losses = [step.loss.item() for step in pending]
        now = time.perf_counter()
        tokens = sum(step.ids.numel() for step in pending)
        rate = tokens / max(now - self._last_read, 1e-9)
        self._last_read = now
        for step, loss in zip(pending, losses, strict=True):
            for fed, ids in zip(step.fed, step.ids.cpu().numpy(), strict=True):
                self.ledger.saw(
                    epoch=fed.epoch,
                    step=step.step,
                    window=fed.window,
                    tokens_before=fed.position * self._context,
                    ids=ids,
                )
            if not np.isfinite(loss):
                raise TrainingDiverged(_divergence(step, loss))
            self._tokens += step.ids.numel()
            self.rows.append(LogRow(step.step, self._tokens, loss, step.lr, rate))
        if pending and self._progress is not None:
            self._progress(self._tokens, self._windows * self._context, losses[-1])

    def summary(self) -> TrainSummary:
        """Return what all steps came to."""
        seconds = self._last_read - self._started
        share = max(len(self.rows) // 20, 1)
        return TrainSummary(
            steps=len(self.rows),
            windows=self._tokens // self._context,
            tokens=self._tokens,
            seconds=seconds,
            tokens_per_second=(self._tokens - self._restored) / max(seconds, 1e-9),
            first_loss=float(np.mean([row.loss for row in self.rows[:share]])),
            last_loss=float(np.mean([row.loss for row in self.rows[-share:]])),
        )


def _divergence(step: Pending, loss: float) -> str:
    windows = ", ".join(f"{fed.window} (epoch {fed.epoch})" for fed in step.fed[:8])
    more = len(step.fed) - 8
    return (
        f"the loss of step {step.step} is {loss}, at learning rate {step.lr:g}; its windows: "
        f"{windows}{f' and {more} more' if more > 0 else ''}. "
        "A lower learning rate, a longer warm-up or float32 usually helps."
    )
