"""Callbacks between two optimiser steps: they start the clock, write heartbeats and save models.

A checkpoint to resume from (`checkpoint-N`) is the trainer's, with all that a resumed run needs; a
kept model (`step-N`) is a whole model for the detectors. Both lie in the folder that survives a
kill, each complete or absent; kept models move into the artifact when the run ends.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from train.checkpoint_steps import checkpoint_folder
from train.execution import ExecutionSettings
from train.loop.record import Record
from train.loop.resume import Timer, complete_checkpoint, seal_model, unseal_model
from train.processes.environment import rank, wait_for_all
from train.processes.heartbeat import HeartbeatWriter, Phase
from train.processes.preemption import StopRequest
from train.transformers_logging import plain_transformers

if TYPE_CHECKING:
    from train.loop.preparation import Prepared

Weights = Mapping[str, torch.Tensor]


class StartClock(TrainerCallback):
    """Starts the record's clock once everything is set up."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self._record.start()


class HeartbeatCallback(TrainerCallback):
    """Writes heartbeats at those places of a step where callbacks are called."""

    def __init__(self, heartbeat: HeartbeatWriter) -> None:
        self._heartbeat = heartbeat

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Write that the gradients are there."""
        self._heartbeat.write(Phase.UPDATE, state.global_step + 1)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Write that the step is done."""
        self._heartbeat.write(Phase.BETWEEN, state.global_step)


class ResumeCheckpoints(TrainerCallback):
    """Asks for checkpoints to resume from, and completes each with our own files."""

    def __init__(
        self,
        record: Record,
        identity: str,
        *,
        timer: Timer,
        execution: ExecutionSettings,
        request: StopRequest,
        heartbeat: HeartbeatWriter,
    ) -> None:
        """Set what is saved, and when.

        Args:
            record: what was fed and lost so far.
            identity: of the run.
            timer: decides when a checkpoint is due.
            execution: how the run is computed.
            request: a checkpoint is saved, too, when SIGTERM was received.
            heartbeat: written before a checkpoint is.
        """
        self._request = request
        self._heartbeat = heartbeat
        self._record = record
        self._identity = identity
        self._timer = timer
        self._execution = execution

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Ask for a checkpoint where one is due."""
        last = state.global_step == state.max_steps
        due = self._request.share(due=not last and self._timer.due(state.global_step))
        control.should_training_stop |= self._request.shared
        control.should_save = due or self._request.shared
        if control.should_save:
            self._heartbeat.write(Phase.SAVE, state.global_step)
            # The exposures must hold this step before the checkpoint says that it is done.
            self._record.read()

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Complete the checkpoint that the trainer has written."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        complete_checkpoint(
            folder, self._record, self._identity, state.global_step, self._execution
        )
        self._timer.saved()


class KeptModels(TrainerCallback):
    """Keeps whole models at the steps that were asked for."""

    def __init__(
        self,
        steps: Sequence[int],
        folder: Path,
        *,
        record: Record,
        prepared: "Prepared",
        tokenizer: PreTrainedTokenizerBase,
        weights: Callable[[], Weights | None],
        use_cache: bool,
        heartbeat: HeartbeatWriter,
    ) -> None:
        """Set what a model is saved from.

        Args:
            steps: after which a model is kept.
            folder: where, as `step-N`.
            record: read before a model is saved, so that none is kept whose loss ran away.
            prepared: the model in training.
            tokenizer: saved beside each.
            weights: gives the whole state where it is spread over processes, else None; called in
                every process.
            use_cache: the model's own setting, which training switches off.
            heartbeat: written before a model is.
        """
        self._steps = frozenset(steps)
        self._folder = folder
        self._record = record
        self._prepared = prepared
        self._tokenizer = tokenizer
        self._weights = weights
        self._use_cache = use_cache
        self._heartbeat = heartbeat

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Keep the model where its step was asked for."""
        if state.global_step not in self._steps:
            return
        self._heartbeat.write(Phase.SAVE, state.global_step)
        self._record.read()
        weights = self._weights()
        if rank() == 0:
            self._save(self._folder / checkpoint_folder(state.global_step), weights)
        wait_for_all()

    def _save(self, folder: Path, weights: Weights | None) -> None:
        """Write the model under another name first, so that it is never there in part."""
        part = folder.with_name(f".{folder.name}")
        for old in (part, folder):
            shutil.rmtree(old, ignore_errors=True)
        config = self._prepared.model.config
        config.use_cache, switched = self._use_cache, config.use_cache
        try:
            self._prepared.save(part, weights=weights, settled=False)
        finally:
            config.use_cache = switched
        with plain_transformers():
            self._tokenizer.save_pretrained(part)
        seal_model(part)
        part.rename(folder)


def move_kept_models(steps: Sequence[int], folder: Path, out: Path) -> None:
    """Move the kept models into the artifact."""
    for step in steps:
        name = checkpoint_folder(step)
        unseal_model(folder / name)
        # Without a store the two may lie on different file systems.
        shutil.move(folder / name, out / name)
