"""How long each step of a plan will take on this machine, from a short measurement.

Training, and passes of a model over texts, follow from their operations and the rate at which
this machine trains the shape, which is measured (`train.speed_measurement`). A corpus follows from
its tokens. What is left takes seconds each. Good to a factor of two on a machine that is otherwise
idle; steps of a model whose sizes are not known have no estimate.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.estimates.injection import InjectionEstimate
from train.models.model_sizes import Sizes, known_sizes
from train.models.shapes import flops_per_token

if TYPE_CHECKING:
    from train.speed_measurement import TrainingRate

TOKENS_A_SECOND = 250_000
"""Tokenised and audited on two cores; measured by `python -m scripts.bench.inject`."""
START_SECONDS = 3.0
"""Until a training run or a pass over texts is under way: imports, loading a model."""
OTHER_SECONDS = 2.0
"""Of plans, audits, scores, results: seconds, independent of the model."""
_ANSWERS = 5
"""Passes over a question for task accuracy: its answers, and prompts without content."""
_FORWARD = 1 / 3
"""Share of the operations of training that a forward pass takes."""


def measured_rate(arms: Sequence[ArmExperiment]) -> "tuple[Sizes, TrainingRate] | None":
    """Measure how fast this machine trains the first arm's model; None if it has no sizes."""
    experiment = arms[0].experiment
    sizes = known_sizes(experiment.model)
    if sizes is None:
        return None
    from train.speed_measurement import training_rate

    return sizes, training_rate(sizes.shape, sizes.vocabulary, experiment.train)


def step_seconds(
    step: Step,
    *,
    sizes: Sizes,
    rate: "TrainingRate",
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


def pass_seconds(tokens: float, *, sizes: Sizes, rate: "TrainingRate", context: int) -> float:
    """Return the seconds in which a model reads so many tokens.

    Args:
        tokens: that it reads.
        sizes: of the model.
        rate: measured on this machine.
        context: tokens of a text.
    """
    operations = flops_per_token(sizes.shape, sizes.vocabulary, context) * _FORWARD
    return START_SECONDS + tokens * operations / rate.flops_per_second
