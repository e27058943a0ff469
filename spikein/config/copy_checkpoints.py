"""Checkpoints that are counted from the copies, as optimiser steps of the training.

`train.checkpoints.after_copies` depends on the placement and the stream, which the training loop
does not know. So arms get `steps` in its place before their steps are named: a model's identity
has the steps that are kept, however they were counted.
"""

import math
from collections.abc import Iterable, Iterator

from inject.errors import InputError
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment
from train.schedule import total_steps

KEY = "train.checkpoints.after_copies"


def last_copy_step(experiment: Experiment) -> int:
    """Return the last optimiser step that can train on a copy.

    Raises:
        InputError: copies are placed over the whole training; as `Placement.shares`.
    """
    train, placement = experiment.train, experiment.placement
    if not placement.timed:
        raise InputError(
            "copies are placed over the whole training, so no step comes after the last of them",
            where=KEY,
            allowed="with placement.stretch or placement.between",
            hint="Set placement.stretch and placement.tail, or name steps by "
            "train.checkpoints.steps.",
        )
    n_windows = experiment.corpus.tokens // train.context
    _, share = placement.shares(n_windows, train.context)
    return math.ceil(int(share * n_windows) / train.batch_windows)


def with_counted_steps(experiment: Experiment) -> Experiment:
    """Return an experiment whose checkpoints are all counted from the start of training.

    Raises:
        InputError: as `last_copy_step`.
    """
    train, rules = experiment.train, experiment.train.checkpoints
    if rules is None or not rules.after_copies:
        return experiment
    last, total = last_copy_step(experiment), total_steps(train, experiment.corpus.tokens)
    counted = {last + count for count in rules.after_copies if last + count <= total}
    steps = tuple(sorted(counted.union(rules.steps)))
    checkpoints = rules.model_copy(update={"steps": steps, "after_copies": ()})
    return experiment.model_copy(
        update={"train": train.model_copy(update={"checkpoints": checkpoints})}
    )


def notes_on_steps_beyond(arms: Iterable[ArmExperiment]) -> Iterator[str]:
    """Yield a note for each training that ends before a step counted from its copies."""
    for arm in arms:
        experiment = arm.experiment
        train = experiment.train
        if train.checkpoints is None or not train.checkpoints.after_copies:
            continue
        last, total = last_copy_step(experiment), total_steps(train, experiment.corpus.tokens)
        beyond = [count for count in train.checkpoints.after_copies if last + count > total]
        if beyond:
            yield (
                f"{KEY}: no model is kept {', '.join(map(str, beyond))} steps after the copies "
                f"of a training whose copies end at step {last} of {total}."
            )
