"""The schedule of a run by its steps: the learning rate, and the steps whose models are kept.

Step s of S, from 1, with W warm-up steps (the share of `warmup`, rounded):

    warm-up     s <= W    s / W
    constant              1
    linear                1 - (s - 1 - W) / (S - W)
    cosine                (1 + cos(pi (s - 1 - W) / (S - W))) / 2

Thus no step has a rate of zero, neither the first nor the last. Both are pure functions of
the settings and the number of steps, the same after every restart. No torch.
"""

import math

from inject.errors import InputError
from train.settings import CheckpointSettings, TrainSettings


def schedule_factor(settings: TrainSettings, step: int, *, steps: int) -> float:
    """Return the share of the peak learning rate at `step` (from 1) of `steps`."""
    # Fewer than all steps are warm-up.
    warmup_steps = min(round(settings.warmup * steps), steps - 1)
    if step <= warmup_steps:
        return step / warmup_steps
    passed = (step - 1 - warmup_steps) / (steps - warmup_steps)
    if settings.schedule == "linear":
        return 1.0 - passed
    if settings.schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * passed))
    return 1.0


def step_count(settings: TrainSettings, n_windows: int) -> int:
    """Return the number of optimiser steps of all epochs; the last step may be smaller."""
    return math.ceil(settings.epochs * n_windows / settings.batch_windows)


def total_steps(settings: TrainSettings, tokens: int) -> int:
    """Return the number of optimiser steps of a run on `tokens` tokens; at least 1."""
    return max(1, step_count(settings, tokens // settings.context))


def kept_steps(settings: TrainSettings, tokens: int) -> tuple[int, ...]:
    """Return the steps whose models such a run keeps, in addition to the trained one.

    Raises:
        InputError: if a requested step exceeds the run.
    """
    rules = settings.checkpoints
    return () if rules is None else checkpoint_steps(rules, total_steps(settings, tokens))


def checkpoint_steps(settings: CheckpointSettings, total: int) -> tuple[int, ...]:
    """Return the steps after which a model is kept, ascending, all before the last.

    Args:
        settings: the rule.
        total: optimiser steps of the run.

    Raises:
        InputError: if a requested step exceeds the run.
        ValueError: for steps counted from the copies, which this does not know.
    """
    if settings.after_copies:
        raise ValueError("steps after the copies are not yet counted from the start")
    beyond = [step for step in settings.steps if step > total]
    if beyond:
        raise InputError(
            f"step {beyond[0]} is listed, but the run has {total}",
            where="train.checkpoints.steps",
            allowed=f"1 to {total}",
        )
    candidates = set(settings.steps)
    if settings.every is not None:
        candidates.update(range(settings.every, total, settings.every))
    candidates.update(max(1, round(share * total)) for share in settings.fractions)
    power = 1
    while power <= min(settings.powers_of_two or 0, total):
        candidates.add(power)
        power *= 2
    steps = sorted(candidates - {total})
    return tuple(_spread_evenly(steps, settings.max_kept or len(steps)))


def _spread_evenly(steps: list[int], most: int) -> list[int]:
    """Return at most `most` of the steps: the last, then the one farthest from those chosen."""
    if len(steps) <= most:
        return steps
    chosen = [steps[-1], steps[0]][:most]
    while len(chosen) < most:
        candidates = [step for step in steps if step not in chosen]
        # Ties go to the earlier step, where the model changes more.
        gaps = {step: min(_distance(step, other) for other in chosen) for step in candidates}
        chosen.append(max(candidates, key=lambda step: (gaps[step], -step)))
    return sorted(chosen)


def _distance(step: int, other: int) -> float:
    return abs(math.log(step) - math.log(other))
