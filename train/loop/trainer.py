"""Transformers' `Trainer` with our order, our schedule and our record of each step."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PrinterCallback, Trainer, TrainingArguments

from train.loop.callbacks import HeartbeatCallback, StartClock
from train.loop.dataset import WindowSequence, collate
from train.loop.record import PendingPass, Record
from train.processes.heartbeat import HeartbeatWriter, Phase
from train.window_inputs import IGNORED


class KeyedTrainer(Trainer):
    """`Trainer` that keeps the given order, takes our schedule and reports each step."""

    lr_scheduler: LambdaLR | None

    def __init__(
        self,
        model: PreTrainedModel,
        arguments: TrainingArguments,
        stream: WindowSequence,
        record: Record,
        *,
        schedule: Callable[[int], float],
        bfloat16: bool,
        heartbeat: HeartbeatWriter,
    ) -> None:
        """Set what is trained, on what, and what is recorded.

        Args:
            model: trained in place.
            arguments: of `Trainer`.
            stream: the windows, in their order.
            record: takes each pass.
            schedule: the factor of the learning rate in a step, counted from 1.
            bfloat16: whether the forward pass is computed so.
            heartbeat: written at each place of a step.
        """
        self._record = record
        self._schedule = schedule
        self._bfloat16 = bfloat16
        self._heartbeat = heartbeat
        self._counts_labels = stream.extra_inputs is not None
        self._objective = stream.objective
        super().__init__(model=model, args=arguments, train_dataset=stream, data_collator=collate)
        if self._objective is not None:
            self.loss_is_scaled_for_ga = True
        self.remove_callback(PrinterCallback)
        self.add_callback(StartClock(record))
        self.add_callback(HeartbeatCallback(heartbeat))

    def compute_loss_context_manager(self) -> AbstractContextManager[Any]:
        """Return the context of the forward pass: bfloat16 arithmetic, where asked for.

        Not through Accelerate, which would also turn all logits into float32 copies and leave
        the model's `forward` wrapped.
        """
        return torch.autocast(self.args.device.type, dtype=torch.bfloat16, enabled=self._bfloat16)

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> LambdaLR:
        """Return our schedule; torch counts the updates done, we count steps from 1."""
        scheduler = LambdaLR(optimizer or self.optimizer, lambda done: self._schedule(done + 1))
        self.lr_scheduler = scheduler
        return scheduler

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], torch.Tensor | int | None]:
        """Return the windows of a step."""
        self._heartbeat.write(Phase.DATA, self.state.global_step + 1)
        return super().get_batch_samples(epoch_iterator, num_batches, device)

    def training_step(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        """Make one forward and backward pass, then record what the model was fed."""
        step = self.state.global_step + 1
        self._heartbeat.write(Phase.PASS, step)
        fed = inputs.pop("fed")
        if self._objective is not None:
            inputs["counted"] = torch.tensor([float(one.window >= 0) for one in fed])
        loss = super().training_step(model, inputs, num_items_in_batch)
        lr = float(self.optimizer.param_groups[0]["lr"])
        labels = inputs["labels"][:, 1:].ne(IGNORED).sum() if self._counts_labels else None
        ids = inputs["input_ids"] if self._objective is None else self._objective.fed(inputs)
        self._record.add(PendingPass(step, lr, fed, ids, loss, labels))
        return loss

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """Return the model's own loss, or the objective's share of its mean over the step."""
        if self._objective is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        losses = self._objective.losses(model, inputs).float()
        # Windows that only fill up the end of the run count for nothing, whatever they lost.
        counted = inputs["counted"].to(losses.device) > 0
        share = torch.where(counted, losses, torch.zeros_like(losses)).sum()
        # Gradients are averaged over processes, and the mean is over the windows of all of them.
        return share * self.accelerator.num_processes / num_items_in_batch

    def _get_num_items_in_batch(
        self, batch_samples: list[dict[str, Any]], device: torch.device
    ) -> torch.Tensor | int | None:
        """Return the label tokens of the step (an objective: its windows), at least 1.

        So a step without any has a loss of 0.
        """
        # The sum over all processes waits for every one of them.
        self._heartbeat.write(Phase.COUNT, self.state.global_step + 1)
        if self._objective is not None:
            windows = sum(one.window >= 0 for batch in batch_samples for one in batch["fed"])
            found = torch.tensor([float(windows)], device=device)
            return self.accelerator.gather(found).sum().clamp(min=1)
        count = super()._get_num_items_in_batch(batch_samples, device)
        return count.clamp(min=1) if isinstance(count, torch.Tensor) else count

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Give the trackers, where there are any, what our own log holds beside."""
        if "loss" in logs and self._record.rows:
            row = self._record.rows[-1]
            known = {"tokens": row.tokens, "tokens_per_second": row.tokens_per_second}
            logs = {**logs, **known} if np.isnan(row.mfu) else {**logs, **known, "mfu": row.mfu}
        super().log(logs, start_time)

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """Return 0: the count is ours (`train.models.shapes.flops_per_token`), and this one is
        slow."""
        return 0
