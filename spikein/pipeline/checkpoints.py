"""The checkpoints of an arm's training: every one is scored as a model."""

from collections.abc import Callable, Mapping

from inject.step import Step, StepGroup, axis_pairs
from spikein.config.sweep import ArmExperiment
from train.loop.schedule import kept_steps, total_steps
from train.models.model_node import ModelNode


def checkpoint_scores(
    arm: ArmExperiment,
    trained: Step,
    scores: Step,
    base_scores: Step | None,
    score: Callable[[ModelNode], Step | None],
) -> dict[int, Step]:
    """Return the scores of each checkpoint by its optimiser steps; none where none is kept.

    Args:
        arm: the arm.
        trained: its training.
        scores: of the trained model, which is the last.
        base_scores: of the model that training starts from, which is step 0; None where nothing is
            known of it.
        score: makes the scores of another model.
    """
    settings, tokens = arm.experiment.train, arm.experiment.corpus.tokens
    kept = kept_steps(settings, tokens)
    if not kept:
        return {}
    start = base_scores if settings.mode != "pretrain" else None
    found = {
        0: start,
        **{step: score(ModelNode(step=trained, checkpoint=step)) for step in kept},
        total_steps(settings, tokens): scores,
    }
    return {step: one for step, one in found.items() if one is not None}


def checkpoint_groups(
    arm: ArmExperiment, found: Mapping[int, Step], *, trained: Step, examples: Step
) -> list[StepGroup]:
    """Return the checkpoints as `trajectory_step` takes them.

    Args:
        arm: the arm.
        found: by `checkpoint_scores`.
        trained: its training.
        examples: its pool.
    """
    train = arm.experiment.train
    fed = train.epochs * (arm.experiment.corpus.tokens // train.context) * train.context
    return [
        StepGroup(
            {
                "axes": axis_pairs(arm.labels),
                "seed": arm.seed,
                "step": step,
                "tokens": min(step * train.batch_tokens, fed),
                "batch_tokens": train.batch_tokens,
                "constant_rate": train.schedule == "constant" and train.warmup == 0,
            },
            {"scores": scores, "examples": examples, "model": trained},
        )
        for step, scores in found.items()
    ]
