"""How fast this machine trains a shape: a few real steps on random tokens, in seconds.

The model is the shape itself, or, where one window of it is too much work, the shape with fewer
layers and then a shorter window; a rate of floating-point operations carries over to the rest.
Nothing of the measured model is kept. Cost: torch's import, then about a second and a half.
"""

import statistics
import time
from typing import NamedTuple

from train.settings import TrainSettings
from train.shapes import Shape, build_model, flops_per_token

_MOST_FLOPS = 2.0e11
"""Of one measured step: some seconds on the slowest machines."""
_SECONDS = 1.5
_LEAST_STEPS, _MOST_STEPS = 2, 20


class TrainingRate(NamedTuple):
    """What was measured."""

    flops_per_second: float
    device: str
    """`cpu` or `cuda`."""
    steps: int
    """Timed steps, after one that was not."""
    whole: bool
    """Whether the shape itself was measured, and not one with fewer layers or shorter windows."""


def training_rate(shape: Shape, vocabulary: int, settings: TrainSettings) -> TrainingRate:
    """Time a few optimiser steps of a shape on this machine.

    Args:
        shape: the model's sizes.
        vocabulary: rows of its embedding.
        settings: give the window and the windows of a step.
    """
    import torch

    small, context, windows = _small_enough(shape, vocabulary, settings)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = build_model(small, vocabulary, 0, seed=0).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary, (windows, context), generator=random).to(device)
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) <= _LEAST_STEPS or (
        len(seconds) < _MOST_STEPS and time.perf_counter() - began < _SECONDS
    ):
        started = time.perf_counter()
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    timed = seconds[1:]
    operations = windows * context * flops_per_token(small, vocabulary, context)
    return TrainingRate(
        flops_per_second=operations / statistics.median(timed),
        device=device,
        steps=len(timed),
        whole=small == shape and context == settings.context,
    )


def _small_enough(shape: Shape, vocabulary: int, settings: TrainSettings) -> tuple[Shape, int, int]:
    """Return shape, context and windows of a step that is not too much work to time."""

    def fits(tried: Shape, context: int, windows: int) -> bool:
        return windows * context * flops_per_token(tried, vocabulary, context) <= _MOST_FLOPS

    windows, context, small = settings.batch_windows, settings.context, shape
    while windows > 1 and not fits(small, context, windows):
        windows //= 2
    while small.layers > 1 and not fits(small, context, windows):
        small = small.model_copy(update={"layers": small.layers // 2})
    while context > 16 and not fits(small, context, windows):
        context //= 2
    return small, context, windows
