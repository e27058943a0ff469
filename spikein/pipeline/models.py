"""The models of an experiment: one record each, and the inputs of the steps that compare them.

The module of its steps defines a role (`twin_models`, `checkpoints_of`, `unlearning`). Scores and
comparisons work with any role; detectors treat the model as an arm's own unless `scored_as`
specifies otherwise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from analysis.arm import axis_column
from detect.evidence.needs import TWIN, Role, Scored
from detect.ground_truth.ground_truth import BASE
from inject.step import Step, StepGroup, axis_pairs
from spikein.config.sweep import ArmExperiment
from train.models.model_node import ModelNode
from train.schedule import kept_steps, total_steps
from train.unlearn.registry import MethodSetting

RETRAINED = "retrained"
SHADOW = "shadow"
UNLEARNED = "unlearned"
_SCORED_AS: Mapping[str, Role] = {
    BASE: "base",
    TWIN: "clean",
    RETRAINED: "retrained",
    UNLEARNED: "unlearned",
}
MODELS_FILE = "models.parquet"
_TEXTS = ("arm", "label", "role", "method", "condition", "artifact", "scores")


@dataclass(frozen=True, kw_only=True)
class Model:
    """One model of an arm, and the steps built from it."""

    arm: ArmExperiment
    role: str
    """`contaminated`, `base`, `twin`, `retrained`, `shadow`, `unlearned`, …"""
    node: ModelNode
    """The artifact."""
    scores: Step | None = None
    """None if it is not scored."""
    steps: Mapping[str, Step] = field(default_factory=dict)
    """Its training data: `plan` and `audit` of its stream, and the `membership` of a twin."""
    checkpoint: int | None = None
    """Optimiser steps of a model along the training of an arm."""
    method: str = ""
    """The method of its unlearning."""
    condition: str = ""
    """A change before scoring: rounded weights, relearning."""
    setting: MethodSetting | None = None
    """Of an unlearned model; its label is unique in the arm."""
    relearned: Mapping[int, Step] = field(default_factory=dict)
    """Optimiser steps of plain training on one half of the forget set to the scores after them,
    ascending."""
    conditions: Mapping[str, Step] = field(default_factory=dict)
    """A name of `unlearning.conditions` to the scores under it."""

    @property
    def trained(self) -> Step:
        """The step that trains it.

        Raises:
            LookupError: for a pretrained model.
        """
        if self.node.step is None:
            raise LookupError(f"the {self.role} model is not trained here")
        return self.node.step

    @property
    def own_scores(self) -> Step:
        """Its scores, of all rows of the pool.

        Raises:
            LookupError: for a model without scores.
        """
        if self.scores is None:
            raise LookupError(f"the {self.role} model is not scored")
        return self.scores

    @property
    def membership(self) -> Step:
        """The examples, with the sides of a twin."""
        return self.steps["membership"]

    @property
    def plan(self) -> Step:
        """The positions of the copies in its stream."""
        return self.steps["plan"]

    @property
    def audit(self) -> Step:
        """The audit of its stream."""
        return self.steps["audit"]

    @property
    def scored(self) -> Scored:
        """The model as input of the detectors' evidence."""
        return Scored(self.node, scored_as(self.role))

    def group(
        self,
        steps: Mapping[str, Step | None],
        *,
        axes: Mapping[str, str] | None = None,
        **values: Any,
    ) -> StepGroup:
        """Return the model as input of a step that compares models.

        Args:
            steps: the steps of the model to read, by name.
            axes: its place in the sweep; None for its arm's.
            values: further values for the step's settings.
        """
        place = self.arm.labels if axes is None else axes
        return StepGroup({"axes": axis_pairs(place), "seed": self.arm.seed, **values}, steps)


def scored_as(role: str) -> Role:
    """Return the role of a model for detectors."""
    return _SCORED_AS.get(role, "arm")


def models_table(models: Sequence[Model], folders: Mapping[str, str]) -> pa.Table:
    """Return `models.parquet`: one row per model, with the folder names of its artifacts.

    Args:
        models: of all arms.
        folders: of the built artifacts, by the digests of their steps.
    """
    axes = list(dict.fromkeys(axis for model in models for axis in model.arm.labels))

    def row(model: Model) -> dict[str, Any]:
        weights = model.node.pretrained if model.node.step is None else model.node.step.digest
        scores = "" if model.scores is None else model.scores.digest
        return {
            **{axis_column(axis): value for axis, value in model.arm.labels.items()},
            "arm": model.arm.label,
            "label": model.arm.words,
            "seed": model.arm.seed,
            "role": model.role,
            "method": model.method,
            "condition": model.condition,
            "checkpoint": model.checkpoint,
            "artifact": folders.get(weights or "", weights),
            "scores": folders.get(scores, ""),
        }

    columns = [(axis_column(axis), pa.string()) for axis in axes]
    columns += [(name, pa.string()) for name in _TEXTS]
    columns += [("seed", pa.int64()), ("checkpoint", pa.int64())]
    return pa.Table.from_pylist([row(model) for model in models], schema=pa.schema(columns))


def checkpoints_of(
    last: Model, start: Model | None, score: Callable[[ModelNode], Step | None]
) -> tuple[Model, ...]:
    """Return the scored models of an arm's training, from the first step to the last.

    Args:
        last: the trained model.
        start: the model that training starts from; None if nothing is known about it.
        score: returns the scores of another model.
    """
    settings, tokens = last.arm.experiment.train, last.arm.experiment.corpus.tokens
    saved_steps = kept_steps(settings, tokens)
    if not saved_steps:
        return ()
    by_step = {} if start is None or settings.mode == "pretrain" else {0: start}
    for step in saved_steps:
        node = ModelNode(step=last.trained, checkpoint=step)
        by_step[step] = replace(last, node=node, scores=score(node))
    by_step[total_steps(settings, tokens)] = last
    return tuple(
        replace(model, checkpoint=step)
        for step, model in by_step.items()
        if model.scores is not None
    )


def checkpoint_groups(
    models: Sequence[Model], trained: Step, examples: Step
) -> Iterator[StepGroup]:
    """Yield the scored checkpoints of an arm as input of `analysis.trajectory`.

    Args:
        models: from `checkpoints_of`.
        trained: the arm's training, whose exposures list what each checkpoint had seen.
        examples: its pool.
    """
    for model in models:
        train, step = model.arm.experiment.train, model.checkpoint or 0
        fed = train.epochs * (model.arm.experiment.corpus.tokens // train.context) * train.context
        yield model.group(
            {"scores": model.scores, "examples": examples, "model": trained},
            step=step,
            tokens=min(step * train.batch_tokens, fed),
            batch_tokens=train.batch_tokens,
            constant_rate=train.schedule == "constant" and train.warmup == 0,
        )


Examined = tuple[Model, Step]
"""A scored model, and the examples that it is scored on."""


def twin_groups(models: Sequence[Examined]) -> Iterator[StepGroup]:
    """Yield the twins as inputs of `results_step`, each once.

    A shared twin has only the axes whose value is the same in all its arms.
    """
    shared: dict[tuple[int, str, str], list[Examined]] = {}
    for model, examples in models:
        if model.scores is not None:
            # Retrained models have copies, so each arm shows its own.
            group_key = model.scores.digest if model.role == TWIN else model.arm.label
            shared.setdefault((model.arm.seed, model.role, group_key), []).append((model, examples))
    for (_, role, _), twins in shared.items():
        model, examples = twins[0]
        axes = {
            axis: value
            for axis, value in model.arm.labels.items()
            if all(other.arm.labels[axis] == value for other, _ in twins)
        }
        trained = None if role == TWIN else model.trained
        steps = {"scores": model.scores, "examples": examples, "model": trained}
        yield model.group(steps, axes=axes, model=role, fixed_levels=False)


def base_groups(models: Sequence[Examined]) -> list[StepGroup]:
    """Return the base models as inputs of `results_step`, each once.

    A base model that all arms of a seed share applies to every value of the axes.
    """
    by_seed: dict[int, dict[str, Examined]] = {}
    for model, examples in models:
        if model.scores is not None:
            seen = by_seed.setdefault(model.arm.seed, {})
            seen.setdefault(model.scores.digest, (model, examples))
    axes: dict[str, str] | None = {} if all(len(bases) == 1 for bases in by_seed.values()) else None
    return [
        model.group(
            {"scores": model.scores, "examples": examples},
            axes=axes,
            model=BASE,
            fixed_levels=False,
        )
        for seen in by_seed.values()
        for model, examples in seen.values()
    ]
