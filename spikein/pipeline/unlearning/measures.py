"""What the measures of unlearning read of each arm: its models, and the steps made of each."""

from typing import NamedTuple

from analysis.unlearning.evidence import NO_METHOD, ModelName
from analysis.unlearning.unlearning_step import UnlearntArm
from detect.evidence.views import statistics_step
from detect.task_accuracy.accuracy_step import accuracy_step
from inject.step import Step, StepGroup, axis_pairs
from spikein.config.schema import Experiment
from spikein.pipeline.training import ModelNode
from spikein.pipeline.unlearning.nodes import FurtherScores, UnlearningNodes

_TEXT_VIEW = "view-text"
"""How the scores know the token statistics of the texts as they are."""


class _Model(NamedTuple):
    """One model of an arm."""

    name: ModelName
    method: str
    model: ModelNode
    scores: Step
    further: FurtherScores


def unlearnt_arm(arm: UnlearningNodes) -> UnlearntArm:
    """Return an arm and its models as `unlearning_step` takes them."""
    original, retrained = ModelNode(step=arm.original), ModelNode(step=arm.retrained.trained)
    models = [
        _Model("original", NO_METHOD, original, arm.original_scores, arm.original_further),
        _Model("retrained", NO_METHOD, retrained, arm.retrained_scores, arm.retrained_further),
        *(
            _Model("unlearned", one.setting.label, ModelNode(step=one.trained), one.scores,
                   one.further)
            for one in arm.unlearned
        ),
    ]  # fmt: skip
    if arm.base is not None and arm.base_scores is not None:
        models.append(_Model("base", NO_METHOD, arm.base, arm.base_scores, FurtherScores()))
    return UnlearntArm(
        StepGroup(
            {"axes": axis_pairs(arm.arm.labels), "seed": arm.arm.seed},
            {
                "examples": arm.examples,
                "membership": arm.retrained.membership,
                "original": arm.original,
                "retrained": arm.retrained.trained,
                "relearn_half": arm.relearn_half,
            },
        ),
        [_group(arm, one) for one in models],
    )


def _group(arm: UnlearningNodes, one: _Model) -> StepGroup:
    experiment: Experiment = arm.arm.experiment
    detect = arm.sources.detect
    asked = experiment.analysis.task_accuracy
    conditions = one.further.conditions
    # Relearning is read of the texts' statistics; detectors that read none say nothing of it.
    relearned = {
        number: scores.inputs[_TEXT_VIEW]
        for number, scores in one.further.relearned.items()
        if _TEXT_VIEW in scores.inputs
    }
    return StepGroup(
        {
            "model": one.name,
            "method": one.method,
            "conditions": list(conditions),
            "relearning": list(relearned),
        },
        {
            "scores": one.scores,
            # The very step that the scores are drawn from, where some detector reads it.
            "statistics": statistics_step(one.model, arm.examples, view="text", detect=detect),
            "general": None
            if arm.general is None
            else statistics_step(one.model, arm.general, view="text", detect=detect),
            "accuracy": accuracy_step(one.model, arm.examples, experiment.contaminants, detect)
            if asked
            else None,
            **{f"condition {name}": scores for name, scores in conditions.items()},
            **{f"relearned {number}": step for number, step in relearned.items()},
        },
    )
