"""Estimate the time of each step of a plan on this machine, from a short measurement.

A few real training steps on random tokens measure the rate at which this machine trains the shape.
If that is too much work or memory, the shape gets fewer windows per step, fewer layers, fewer rows
of the embedding, shorter windows and finally less width; the rate in floating-point operations
carries over. Training and a model's passes over texts follow from this rate by their operations; a
corpus follows from its tokens. All other steps take seconds each. Accurate to a factor of two on an
otherwise idle machine; steps of a model with unknown sizes have no estimate. The measured model is
discarded. Cost: torch's import, then some two seconds and at most half a gigabyte.
"""

import statistics
import time
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.estimates.injection import InjectionEstimate
from train.device import default_device
from train.models.model_sizes import Sizes, known_sizes
from train.models.shapes import Shape, build_model, flops_per_token, parameter_count
from train.settings import TrainSettings

TOKENS_A_SECOND = 250_000
"""Tokenised and audited on two cores; measured by `python -m scripts.bench.inject`."""
START_SECONDS = 3.0
"""Start-up of a training run or a pass over texts: imports, loading a model."""
OTHER_SECONDS = 2.0
"""Of plans, audits, scores, results: seconds, independent of the model."""
_ANSWERS = 5
"""Passes over a question for task accuracy: its answers, and prompts without content."""
_FORWARD = 1 / 3
"""Share of the operations of training that a forward pass takes."""
_MAX_FLOPS = 4.0e10
"""Of one measured step: about a second on a slow machine."""
_MAX_PARAMETERS = 30_000_000
"""Of a measured model, each with its gradient and two moments."""
_SECONDS = 1.5
_MIN_STEPS, _MAX_STEPS = 2, 20
_MIN_ROWS, _MIN_CONTEXT = 4096, 16


class TrainingRate(NamedTuple):
    """The measured rate of training."""

    flops_per_second: float
    device: str
    """`cpu` or `cuda`."""
    steps: int
    """Timed steps, after one that was not."""
    whole: bool
    """Whether the shape itself was measured, not a reduced one."""


def training_rate(shape: Shape, vocabulary: int, settings: TrainSettings) -> TrainingRate:
    """Time a few optimiser steps of a shape on this machine.

    Args:
        shape: the model's sizes.
        vocabulary: rows of its embedding.
        settings: give the window, the windows of a step and its arithmetic.
    """
    import torch

    bfloat16 = default_device().training_precision(settings.precision) == "bfloat16"

    sample = shrink_to_fit(shape, vocabulary, settings)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = build_model(sample.shape, sample.vocabulary, 0, seed=0).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    whole = sample[:3] == (shape, vocabulary, settings.context)
    random = torch.Generator().manual_seed(0)
    size = sample.windows, sample.context
    ids = torch.randint(sample.vocabulary, size, generator=random).to(device)
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) <= _MIN_STEPS or (
        len(seconds) < _MAX_STEPS and time.perf_counter() - began < _SECONDS
    ):
        started = time.perf_counter()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=bfloat16):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        if whole:
            # Relative to the few tokens of a smaller sample, an update would weigh far too much.
            optimiser.step()
        optimiser.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    timed = seconds[1:]
    return TrainingRate(
        flops_per_second=sample.flops / statistics.median(timed),
        device=device,
        steps=len(timed),
        whole=whole,
    )


class StepSample(NamedTuple):
    """The model shape and batch to measure."""

    shape: Shape
    vocabulary: int
    context: int
    windows: int
    """Of one step."""

    @property
    def flops(self) -> float:
        """Operations of one step."""
        tokens = self.windows * self.context
        return tokens * flops_per_token(self.shape, self.vocabulary, self.context)

    @property
    def parameters(self) -> int:
        """Parameters of the model."""
        return parameter_count(self.shape, self.vocabulary)

    @property
    def fits(self) -> bool:
        """Whether its work and memory are within the limits."""
        return self.flops <= _MAX_FLOPS and self.parameters <= _MAX_PARAMETERS


def shrink_to_fit(shape: Shape, vocabulary: int, settings: TrainSettings) -> StepSample:
    """Return the shape, or a smaller similar one, in steps of about a second."""
    sample = StepSample(shape, vocabulary, settings.context, settings.batch_windows)
    while not sample.fits and sample.windows > 1 and sample.parameters <= _MAX_PARAMETERS:
        sample = sample._replace(windows=sample.windows // 2)
    while not sample.fits and (smaller := _reduce_sample(sample)) is not None:
        sample = smaller
    return sample


def _reduce_sample(sample: StepSample) -> StepSample | None:
    """Return the next smaller sample, reducing the width last; None if there is none."""
    shape = sample.shape
    if sample.windows > 1:
        return sample._replace(windows=1)
    if shape.layers > 1:
        return sample._replace(shape=shape.model_copy(update={"layers": shape.layers // 2}))
    if sample.vocabulary > _MIN_ROWS:
        return sample._replace(vocabulary=max(sample.vocabulary // 2, _MIN_ROWS))
    if sample.context > _MIN_CONTEXT and sample.flops > _MAX_FLOPS:
        return sample._replace(context=sample.context // 2)
    if shape.heads % 2 or shape.key_value_heads % 2:
        return None
    # Half of the heads, of the same size each.
    half = {
        "hidden": shape.hidden // 2,
        "heads": shape.heads // 2,
        "kv_heads": shape.kv_heads and shape.kv_heads // 2,
        "intermediate": max(shape.intermediate // 2, 1),
    }
    return sample._replace(shape=shape.model_copy(update=half))


def measured_rate(arms: Sequence[ArmExperiment]) -> tuple[Sizes, TrainingRate] | None:
    """Measure how fast this machine trains the first arm's model; None if it has no sizes."""
    experiment = arms[0].experiment
    sizes = known_sizes(experiment.model)
    if sizes is None:
        return None
    return sizes, training_rate(sizes.shape, sizes.vocabulary, experiment.train)


@cache
def reading_rate(sizes: Sizes) -> TrainingRate:
    """Measure how fast this machine trains a model of the sizes, in windows of the usual length."""
    window = min(TrainSettings().context, sizes.shape.context)
    settings = TrainSettings(context=window, batch_tokens=4 * window)
    return training_rate(sizes.shape, sizes.vocabulary, settings)


def step_seconds(
    step: Step,
    *,
    sizes: Sizes,
    rate: TrainingRate,
    injection: Sequence[InjectionEstimate],
    context: int,
) -> float | None:
    """Return the seconds that a step will take; None if it cannot be estimated.

    Args:
        step: one step of the plan.
        sizes: of the model.
        rate: measured on this machine.
        injection: of the arms; the texts of the first count for all.
        context: tokens in a training window.
    """
    cost = step.cost
    if step.kind == "model":
        return START_SECONDS + cost.flops / rate.flops_per_second if cost and cost.flops else None
    if step.kind == "corpus":
        return cost.disk_bytes / 2 / TOKENS_A_SECOND if cost and cost.disk_bytes else OTHER_SECONDS
    if step.kind in ("statistics", "accuracy"):
        if not injection or injection[0].text_tokens is None:
            return None
        passes = 1 if step.kind == "statistics" else _ANSWERS
        tokens = injection[0].text_tokens * passes
        return pass_seconds(tokens, sizes=sizes, rate=rate, context=context)
    return OTHER_SECONDS


def pass_seconds(tokens: float, *, sizes: Sizes, rate: TrainingRate, context: int) -> float:
    """Return the seconds that a model needs to read some tokens.

    Args:
        tokens: the number of tokens.
        sizes: of the model.
        rate: measured on this machine.
        context: tokens of a text.
    """
    operations = flops_per_token(sizes.shape, sizes.vocabulary, context) * _FORWARD
    return START_SECONDS + tokens * operations / rate.flops_per_second
