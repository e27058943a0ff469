"""Transformers' `Trainer` with our order, our schedule and our record of each step.

A checkpoint to resume from (`checkpoint-N`) is the trainer's, with all that a resumed run needs; a
kept model (`step-N`) is a whole model for the detectors. Both are in the folder that survives a
kill, each complete or absent; kept models move into the artifact when the run ends.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from inject.model_folder import checkpoint_folder
from inject.verified_files import MANIFEST, seal
from train.execution import ExecutionSettings
from train.loop.dataset import WindowSequence, collate
from train.loop.record import PendingPass, Record
from train.loop.resume import complete_checkpoint
from train.process_state import plain_transformers
from train.processes.environment import barrier, rank
from train.processes.hang_detection import HeartbeatWriter, Phase
from train.processes.preemption import StopRequest
from train.window_inputs import IGNORED

if TYPE_CHECKING:
    from train.loop.preparation import Prepared


Weights = Mapping[str, torch.Tensor]
EVERY_SECONDS = 300.0
"""Minimum seconds between two checkpoints to resume from."""
MOST_SHARE = 0.02
"""Share of a run's time for checkpoints: large models on slow disks save less often."""


@dataclass(eq=False)
class StepCallback(TrainerCallback):
    """Starts the record's clock, and writes heartbeats at the callbacks of a step."""

    record: Record
    heartbeat: HeartbeatWriter

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock, now that everything is set up."""
        self.record.start()

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Record that the gradients are computed."""
        self.heartbeat.write(Phase.UPDATE, state.global_step + 1)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Record that the step is done."""
        self.heartbeat.write(Phase.BETWEEN, state.global_step)


@dataclass(kw_only=True, eq=False)
class ResumeCheckpoints(TrainerCallback):
    """Requests checkpoints to resume from, and completes each with our own files."""

    record: Record
    """The record so far."""
    identity: str
    """Of the run."""
    execution: ExecutionSettings
    """Execution settings, which determine when a restart checkpoint is due."""
    request: StopRequest
    """SIGTERM requests; one also causes a restart checkpoint."""
    heartbeat: HeartbeatWriter

    def __post_init__(self) -> None:
        """Start the clock."""
        self._saved_at = self._began = time.monotonic()
        self._cost = 0.0

    def _is_due(self, step: int) -> bool:
        """Return whether a restart checkpoint is due, by the steps or seconds since the last."""
        interval = self.execution.resume_every
        if interval is not None:
            return step % interval == 0
        wait = max(EVERY_SECONDS, self._cost / MOST_SHARE)
        return time.monotonic() - self._saved_at >= wait

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Request a checkpoint if one is due."""
        last = state.global_step == state.max_steps
        due = self.request.share(due=not last and self._is_due(state.global_step))
        control.should_training_stop |= self.request.shared
        control.should_save = due or self.request.shared
        if control.should_save:
            self._began = time.monotonic()
            self.heartbeat.write(Phase.SAVE, state.global_step)
            # The exposures must include this step before the checkpoint records it as done.
            self.record.read()

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Complete the checkpoint that the trainer has written."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        complete_checkpoint(folder, self.record, self.identity, state.global_step, self.execution)
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - self._began


@dataclass(kw_only=True, eq=False)
class KeptModels(TrainerCallback):
    """Keeps whole models at the requested steps."""

    steps: Sequence[int]
    """Steps after which a model is kept."""
    folder: Path
    """Folder for the models, as `step-N`."""
    record: Record
    """Record, read before a model is saved, so that no model with a diverged loss is kept."""
    prepared: "Prepared"
    """The model in training."""
    tokenizer: PreTrainedTokenizerBase
    """Tokenizer, saved with each model."""
    weights: Callable[[], Weights | None]
    """Returns the whole state if it is spread over processes, else None; called in every
    process."""
    use_cache: bool
    """The model's own cache setting, which training switches off."""
    heartbeat: HeartbeatWriter

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Keep the model if its step is requested."""
        if state.global_step not in self.steps:
            return
        self.heartbeat.write(Phase.SAVE, state.global_step)
        self.record.read()
        weights = self.weights()
        if rank() == 0:
            self._save(self.folder / checkpoint_folder(state.global_step), weights)
        barrier()

    def _save(self, folder: Path, weights: Weights | None) -> None:
        """Write the model under another name first, so that it is never incomplete."""
        part = folder.with_name(f".{folder.name}")
        for old in (part, folder):
            shutil.rmtree(old, ignore_errors=True)
        config = self.prepared.model.config
        config.use_cache, switched = self.use_cache, config.use_cache
        try:
            self.prepared.save(part, weights=weights, settled=False)
        finally:
            config.use_cache = switched
        with plain_transformers():
            self.tokenizer.save_pretrained(part)
        seal(part, {})
        part.rename(folder)


def move_kept_models(steps: Sequence[int], folder: Path, out: Path) -> None:
    """Move the kept models into the artifact."""
    for step in steps:
        name = checkpoint_folder(step)
        # An artifact has a separate manifest.
        (folder / name / MANIFEST).unlink(missing_ok=True)
        # Without a store the two may be on different file systems.
        shutil.move(folder / name, out / name)


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
        """Set the model, the data and the record.

        Args:
            model: trained in place.
            arguments: arguments of `Trainer`.
            stream: the windows, in their order.
            record: receives each pass.
            schedule: the factor of the learning rate in a step, counted from 1.
            bfloat16: whether the forward pass uses it. heartbeat: written at each phase of a step.
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
        self.add_callback(StepCallback(record, heartbeat))

    def compute_loss_context_manager(self) -> AbstractContextManager[Any]:
        """Return the context of the forward pass: bfloat16 arithmetic, if set.

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
            inputs["counted"] = torch.tensor([float(entry.window >= 0) for entry in fed])
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
        # Windows that only pad the end of the run do not count, regardless of their loss.
        counted = inputs["counted"].to(losses.device) > 0
        share = torch.where(counted, losses, torch.zeros_like(losses)).sum()
        # Gradients are averaged over processes, and the mean is over the windows of all of them.
        return share * self.accelerator.num_processes / num_items_in_batch

    def _get_num_items_in_batch(
        self, batch_samples: list[dict[str, Any]], device: torch.device
    ) -> torch.Tensor | int | None:
        """Return the label tokens of the step (an objective: its windows), at least 1.

        A step without any thus has a loss of 0.
        """
        # The sum over all processes waits for each of them.
        self._heartbeat.write(Phase.COUNT, self.state.global_step + 1)
        if self._objective is not None:
            windows = sum(entry.window >= 0 for batch in batch_samples for entry in batch["fed"])
            local_count = torch.tensor([float(windows)], device=device)
            return self.accelerator.gather(local_count).sum().clamp(min=1)
        count = super()._get_num_items_in_batch(batch_samples, device)
        return count.clamp(min=1) if isinstance(count, torch.Tensor) else count

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Warn of weights that a restart checkpoint lacks; tied ones are saved only once."""
        tied = getattr(self.model, "all_tied_weights_keys", None) or {}
        missing = [name for name in load_result.missing_keys if name not in tied]
        super()._issue_warnings_after_load(load_result._replace(missing_keys=missing))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Give any trackers the further values of our own log."""
        if "loss" in logs and self._record.rows:
            row = self._record.rows[-1]
            counts = {"tokens": row.tokens, "tokens_per_second": row.tokens_per_second}
            logs = {**logs, **counts} if np.isnan(row.mfu) else {**logs, **counts, "mfu": row.mfu}
        super().log(logs, start_time)

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """Return 0: the count is ours (`train.models.shapes.flops_per_token`), and this one is
        slow."""
        return 0
