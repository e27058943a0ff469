"""What a training run is given beside its model: what it sees, and how it is computed."""

from dataclasses import dataclass, field
from pathlib import Path

from train.execution import ExecutionSettings
from train.loop.dataset import ExtraInputs, WindowSource
from train.loop.objective import Objective
from train.loop.record import Recorder
from train.settings import TrainSettings


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """What a model sees, and who writes down that it did."""

    view: WindowSource
    """The stream; its windows have `TrainSettings.context` tokens."""
    recorder: Recorder
    """Records the windows that were fed."""
    extra_inputs: ExtraInputs | None = None
    """What each window brings beside its ids (`train.window_inputs`): labels, positions."""
    objective: Objective | None = None
    """What is minimised in place of the model's own loss; brings its own inputs, so that
    `extra_inputs` stays empty."""


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """How a model is trained: the first two decide its weights, the rest how they are computed."""

    settings: TrainSettings
    seed: int
    """Decides the order of the windows, and dropout in models that have it."""
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    """By default this process alone."""
    unfinished: Path | None = None
    """A folder for checkpoints that survive a kill. The newest of this run there is resumed, and
    gives the weights and the exposures of a run that was never killed."""
    identity: str = ""
    """Digest of everything that bears on the run's numbers; names its checkpoints."""
    resume_every: int | None = None
    """Optimiser steps between two checkpoints; None for one in five minutes."""
