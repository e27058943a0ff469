"""What happens between two optimiser steps: the clock starts, restarts are saved, models are kept.

A restart's checkpoint (`checkpoint-N`) is the trainer's, with everything that goes on needs; a kept
model (`step-N`) is a whole model for the detectors. Both lie in the folder that survives a kill,
each complete or absent; kept models move into the artifact when the run ends.
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
from train.loop.resume import Timer, complete, seal_model, unseal_model
from train.processes.environment import rank, wait_for_all
from train.processes.heartbeat import Heart, Phase
from train.processes.preemption import StopRequest
from train.transformers_logging import plain_transformers

if TYPE_CHECKING:
    from train.loop.preparation import Prepared

Weights = Mapping[str, torch.Tensor]


class Clock(TrainerCallback):
    """Starts the record's clock once everything is set up."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self._record.start()


class Beats(TrainerCallback):
    """Says where in a step this process is, at the places that callbacks are told of."""

    def __init__(self, heart: Heart) -> None:
        self._heart = heart

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Say that the gradients are there."""
        self._heart.beat(Phase.UPDATE, state.global_step + 1)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Say that the step is done."""
        self._heart.beat(Phase.BETWEEN, state.global_step)


class Keeper(TrainerCallback):
    """Asks for checkpoints to restart from, and adds to each what is ours."""

    def __init__(
        self,
        record: Record,
        identity: str,
        *,
        timer: Timer,
        execution: ExecutionSettings,
        request: StopRequest,
        heart: Heart,
    ) -> None:
        """Take what is kept, and when.

        Args:
            record: what was fed and lost so far.
            identity: of the run.
            timer: says when a checkpoint is due.
            execution: how the run is computed.
            request: a checkpoint is due, too, when the run is asked to end.
            heart: told when one is written.
        """
        self._request = request
        self._heart = heart
        self._record = record
        self._identity = identity
        self._timer = timer
        self._execution = execution

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Ask for a checkpoint where one is due."""
        last = state.global_step == state.max_steps
        control.should_training_stop |= self._request.agree()
        due = not last and self._timer.due(state.global_step)
        control.should_save = due or self._request.agreed
        if control.should_save:
            self._heart.beat(Phase.SAVE, state.global_step)
            # The ledger must hold this step before the checkpoint says that it is done.
            self._record.read()

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Complete the checkpoint that the trainer has written."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        complete(folder, self._record, self._identity, state.global_step, self._execution)
        self._timer.saved()


class Milestones(TrainerCallback):
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
        heart: Heart,
    ) -> None:
        """Take what a model is saved from.

        Args:
            steps: after which a model is kept.
            folder: where, as `step-N`.
            record: read before a model is saved, so that none is kept whose loss ran away.
            prepared: the model in training.
            tokenizer: saved beside each.
            weights: gives the whole state where it is spread over processes, else None; called in
                every process.
            use_cache: the model's own setting, which training switches off.
            heart: told when a model is written.
        """
        self._steps = frozenset(steps)
        self._folder = folder
        self._record = record
        self._prepared = prepared
        self._tokenizer = tokenizer
        self._weights = weights
        self._use_cache = use_cache
        self._heart = heart

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Keep the model where its step was asked for."""
        if state.global_step not in self._steps:
            return
        self._heart.beat(Phase.SAVE, state.global_step)
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


def hand_over(steps: Sequence[int], folder: Path, out: Path) -> None:
    """Move the kept models into the artifact."""
    for step in steps:
        name = checkpoint_folder(step)
        unseal_model(folder / name)
        # Without a store the two may lie on different file systems.
        shutil.move(folder / name, out / name)
