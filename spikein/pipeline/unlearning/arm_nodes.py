"""From an arm that is there to what the section `unlearning` adds to it."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from detect.evidence.needs import EvidenceSources
from detect.scores_step import scores_step
from inject.errors import InputError
from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.training import ModelNode
from spikein.pipeline.twin_models import RETRAINED, Reported, TwinNodes
from spikein.pipeline.unlearning.further_scores import probes_of
from spikein.pipeline.unlearning.nodes import UnlearnedModel, UnlearningNodes
from train.device import Device
from train.models.block_count import block_count
from train.unlearn.job import Unlearning, unlearned_step
from train.unlearn.registry import MethodSetting, parse_methods


class ScoredArm(NamedTuple):
    """What an arm has already."""

    arm: ArmExperiment
    examples: Step
    plan: Step
    trained: Step
    scores: Step
    base: ModelNode | None
    base_scores: Step | None
    twins: TwinNodes
    reported: tuple[Reported, ...]
    sources: EvidenceSources
    device: Device
    """What it will run on; decides the number format that `auto` stands for."""


def unlearning_nodes(given: ScoredArm) -> UnlearningNodes | None:
    """Return the unlearned models of an arm and their scores; None without the section.

    Raises:
        InputError: no detector that is asked for looks at a model, a method cannot be found, or
            looks at a block that the model lacks.
    """
    arm, experiment = given.arm, given.arm.experiment
    section = experiment.unlearning
    if section is None:
        return None
    retrained = given.twins.retrained
    if retrained is None:
        raise TypeError("a forget set without a retrained model")
    from_what = Unlearning(given.trained, given.examples, retrained.membership, given.plan)
    probes = probes_of(
        arm,
        section,
        given.sources,
        examples=given.examples,
        membership=retrained.membership,
    )
    found = []
    blocks = block_count(experiment.model)
    for setting in map(partial(_with_format, device=given.device), parse_methods(section.methods)):
        if blocks is not None:
            setting.require_block(blocks)
        trained = unlearned_step(
            setting,
            from_what,
            section.retain,
            seed=arm.seed,
            label=f"{setting.label}, {arm.label}",
            sizes=experiment.model,
            execution=experiment.execution,
        )
        found.append(
            UnlearnedModel(
                setting=setting,
                trained=trained,
                scores=_scores(trained, given.sources),
                further=probes.of(trained, role="unlearned", relearnt=True),
            )
        )
    known = {one.model: one.scores for one in given.reported}
    return UnlearningNodes(
        arm=arm,
        examples=given.examples,
        original=given.trained,
        original_scores=given.scores,
        retrained=retrained,
        retrained_scores=known[RETRAINED],
        base=given.base,
        base_scores=given.base_scores,
        unlearned=tuple(found),
        sources=given.sources,
        relearn_half=probes.half,
        original_further=probes.of(given.trained, role="arm", relearnt=False),
        retrained_further=probes.of(retrained.trained, role="retrained", relearnt=True),
    )


def _with_format(setting: MethodSetting, *, device: Device) -> MethodSetting:
    """Return a setting with the number format that `auto` stands for in its place."""
    precision = device.training_precision(setting.settings.precision)
    return replace(setting, settings=setting.settings.model_copy(update={"precision": precision}))


def _scores(model: Step, sources: EvidenceSources) -> Step:
    scores = scores_step(ModelNode(step=model), sources, role="unlearned")
    if scores is None:
        raise InputError(
            "no detector that is asked for looks at a model, so there is nothing to hold unlearned "
            "models against the retrained one by",
            where="detect.detectors",
            hint="Add loss to detect.detectors.",
        )
    return scores
