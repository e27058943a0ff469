"""The course of the learning rate, as one formula.

Step s of S, from 1, with W warm-up steps (the share of `warmup`, rounded):

    warm-up     s <= W    s / W
    constant              1
    linear                1 - (s - 1 - W) / (S - W)
    cosine                (1 + cos(pi (s - 1 - W) / (S - W))) / 2

So no step is wasted at a rate of zero, neither the first nor the last.
"""

import math

from train.checkpoint_steps import checkpoint_steps
from train.settings import Schedule, TrainSettings


def schedule_factor(schedule: Schedule, step: int, *, steps: int, warmup_steps: int) -> float:
    """Return the share of the peak learning rate at `step` (from 1) of `steps`."""
    if step <= warmup_steps:
        return step / warmup_steps
    passed = (step - 1 - warmup_steps) / (steps - warmup_steps)
    if schedule == "linear":
        return 1.0 - passed
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * passed))
    return 1.0


def learning_rate(settings: TrainSettings, step: int, *, steps: int) -> float:
    """Return the learning rate of optimiser step `step` (from 1) in a run of `steps`."""
    return settings.lr * schedule_factor(
        settings.schedule, step, steps=steps, warmup_steps=warmup_steps(settings, steps)
    )


def warmup_steps(settings: TrainSettings, steps: int) -> int:
    """Return how many of `steps` are warm-up: fewer than all of them."""
    return min(round(settings.warmup * steps), steps - 1)


def step_count(settings: TrainSettings, n_windows: int) -> int:
    """Return the optimiser steps that all epochs take; the last may be a smaller one."""
    return math.ceil(settings.epochs * n_windows / settings.batch_windows)


def total_steps(settings: TrainSettings, tokens: int) -> int:
    """Return the optimiser steps of a run on a stream of so many tokens; at least 1."""
    return max(1, step_count(settings, tokens // settings.context))


def kept_steps(settings: TrainSettings, tokens: int) -> tuple[int, ...]:
    """Return the steps whose models such a run keeps, beside the trained one.

    Raises:
        InputError: a step was asked for that the run does not have.
    """
    asked = settings.checkpoints
    return () if asked is None else checkpoint_steps(asked, total_steps(settings, tokens))
