"""Which optimiser steps leave a model behind, so that detection can be followed over training.

A pure function of the settings and the number of steps: known before anything runs, the same after
every restart. The last step is the trained model itself and never among them. No torch.
"""

import math
from typing import Annotated

from pydantic import Field

from inject.errors import InputError
from inject.settings import PositiveInt, Settings

Fraction = Annotated[float, Field(gt=0, lt=1)]


class CheckpointSettings(Settings):
    """Models kept along the way, as `step-N` beside the trained one; a step in any of the lists."""

    steps: tuple[PositiveInt, ...] = ()
    """These optimiser steps."""
    every: PositiveInt | None = None
    """Each step that is a multiple of this."""
    fractions: tuple[Fraction, ...] = ()
    """These shares of all steps, rounded, at least step 1."""
    powers_of_two: PositiveInt | None = None
    """Steps 1, 2, 4, 8 … up to this one: where most happens early."""
    max_kept: PositiveInt | None = None
    """Keep at most so many: the first and the last, and between them those that lie most evenly
    over the logarithm of the step. The others are never written."""


def checkpoint_steps(settings: CheckpointSettings, total: int) -> tuple[int, ...]:
    """Return the steps after which a model is kept, ascending, all before the last.

    Args:
        settings: the rule.
        total: optimiser steps of the run.

    Raises:
        InputError: a step was asked for that the run does not have.
    """
    beyond = [step for step in settings.steps if step > total]
    if beyond:
        raise InputError(
            f"step {beyond[0]} was asked for, and the run has {total}",
            where="train.checkpoints.steps",
            allowed=f"1 to {total}",
        )
    found = set(settings.steps)
    if settings.every is not None:
        found.update(range(settings.every, total, settings.every))
    found.update(max(1, round(share * total)) for share in settings.fractions)
    power = 1
    while power <= min(settings.powers_of_two or 0, total):
        found.add(power)
        power *= 2
    steps = sorted(found - {total})
    return tuple(_evenly(steps, settings.max_kept or len(steps)))


def _evenly(steps: list[int], most: int) -> list[int]:
    """Return at most so many of the steps, the last first, then always the loneliest."""
    if len(steps) <= most:
        return steps
    kept = [steps[-1], steps[0]][:most]
    while len(kept) < most:
        rest = [step for step in steps if step not in kept]
        # Of equals the earlier: more happens there.
        kept.append(max(rest, key=lambda step: (min(_apart(step, one) for one in kept), -step)))
    return sorted(kept)


def _apart(step: int, other: int) -> float:
    return abs(math.log(step) - math.log(other))


def checkpoint_folder(step: int) -> str:
    """Return the name of a checkpoint's folder inside the model's."""
    return f"step-{step}"
